package ledger

import (
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

// How long the state keeps what it may need again, in hours before the newest record.
const (
	keepShards = 72
	keepCounts = 7 * 24
)

// forget drops what is too old to be needed.
func (s *State) forget() {
	maps.DeleteFunc(s.Shards, func(_ string, sh Shard) bool { return max(sh.Hour, sh.Copied) < s.Newest-keepShards })
	if !s.Claim.Objects { // else what is late goes into a manifest first
		s.forgetCounts()
	}
	s.Lost = slices.DeleteFunc(s.Lost, func(l Lost) bool { return l.Until < s.settled()-keepCounts })
	oldest := s.Newest
	for key := range s.Parts { // objects that were adopted may have events of them
		oldest = min(oldest, key.Hour)
	}
	for key, hour := range s.CoveredAt {
		if _, lives := s.Shards[key]; !lives && hour < oldest-keepShards { // else its next interval may begin before
			delete(s.CoveredAt, key)
			for _, c := range s.Covered {
				delete(c, key)
			}
		}
	}
}

func (s *State) forgetCounts() {
	maps.DeleteFunc(s.Counts, func(h layout.Hour, _ Counts) bool { return s.Forgotten(h) })
}

// Forgotten reports whether what was counted in an hour, and said by a manifest, need not be known
// any more.
func (s *State) Forgotten(h layout.Hour) bool { return h < s.Newest-keepCounts && h < s.settled() }

// settled returns the hour before which no manifest has anything left to say. Without objects there
// are none.
func (s *State) settled() layout.Hour {
	if !s.Claim.Objects {
		return s.Newest
	}
	return s.Closed
}

// leaveOut takes out of a part's coverage what objects have, adopted ones above all: it would keep
// the part open for ever.
func (s *State) leaveOut(c coverage.Set, class transform.EventClass) {
	for shard := range c { // objects of three days cover thousands of them
		c.Subtract(coverage.Set{shard: s.Covered[class][shard]})
	}
}
