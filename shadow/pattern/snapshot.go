package pattern

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// snapshotFormat is the format of snapshots that this version writes.
const snapshotFormat = 1

// Snapshot holds the counts of one or several instances.
type Snapshot struct {
	Format   int              `json:"format"`
	Requests int64            `json:"requests"`
	Patterns []Count          `json:"patterns"`          // the most frequent first, then by text
	Skipped  map[Reason]int64 `json:"skipped,omitempty"` // requests without a pattern
}

// Count is what was counted of a pattern.
type Count struct {
	Pattern  Pattern   `json:"pattern"`
	Requests int64     `json:"requests"`
	Keys     int64     `json:"keys"`
	Failed   int64     `json:"failed,omitempty"`
	Bytes    Histogram `json:"bytes"`
	Micros   Histogram `json:"micros"`
	Replay   *Replay   `json:"replay,omitempty"` // nil: the read was not to be replayed
}

// Parse reads a snapshot that was written as JSON.
func Parse(data []byte) (*Snapshot, error) {
	s := &Snapshot{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("parse snapshot of patterns: %w", err)
	}
	if err := s.Readable(); err != nil {
		return nil, fmt.Errorf("parse snapshot of patterns: %w", err)
	}
	return s, nil
}

// Readable returns why a snapshot from a file cannot be used.
func (s *Snapshot) Readable() error {
	if s.Format < 1 || s.Format > snapshotFormat { // Rule 11: a newer format is refused
		return fmt.Errorf("format %d, this version reads up to %d", s.Format, snapshotFormat)
	}
	return nil
}

// Merge adds the counts of another snapshot. Nothing is cut off: several instances together may
// have more patterns of a table than one collector holds.
func (s *Snapshot) Merge(o *Snapshot) {
	s.Format = snapshotFormat
	s.Requests += o.Requests
	places := map[string]int{}
	for i := range s.Patterns {
		places[s.Patterns[i].Pattern.ID()] = i
	}
	for i := range o.Patterns {
		at, have := places[o.Patterns[i].Pattern.ID()]
		if !have {
			s.Patterns = append(s.Patterns, o.Patterns[i].clone())
			continue
		}
		s.Patterns[at].merge(&o.Patterns[i])
	}
	for reason, n := range o.Skipped {
		s.skip(reason, n)
	}
	s.sort()
}

// GiveUp counts, with a reason, the reads and items that killed instances had still to replay and
// settle.
func (s *Snapshot) GiveUp(why Reason) {
	for i := range s.Patterns {
		c := &s.Patterns[i]
		if c.Pattern.Kind != Read {
			continue // the keys of others are not all those of reads
		}
		if c.Replay == nil {
			c.Replay = &Replay{}
		}
		if n := c.Keys - c.Replay.Replayed - c.Replay.Left(); n > 0 {
			c.Replay.Skip(why, n)
		}
		if n := c.Replay.Waiting(); n > 0 {
			c.Replay.Leave(why, n)
		}
	}
}

// ByText returns the counts, merged where patterns have the same text. Such patterns differ in
// captures of which one shows all and the other nothing.
func (s *Snapshot) ByText() (out []Count) {
	places := map[string]int{}
	for i := range s.Patterns {
		text := s.Patterns[i].Pattern.Text()
		at, have := places[text]
		if !have {
			places[text], out = len(out), append(out, s.Patterns[i].clone())
			continue
		}
		out[at].merge(&s.Patterns[i])
	}
	return out
}

// Share returns which part of the counted requests has the pattern at a place, from 0 to 1.
func (s *Snapshot) Share(place int) float64 {
	if s.Requests == 0 {
		return 0
	}
	return float64(s.Patterns[place].Requests) / float64(s.Requests)
}

// skip adds requests without a pattern.
func (s *Snapshot) skip(reason Reason, n int64) {
	if s.Skipped == nil {
		s.Skipped = map[Reason]int64{}
	}
	s.Skipped[reason] += n
}

// sort brings the patterns into their order.
func (s *Snapshot) sort() {
	type sorted struct {
		text, id string
		count    Count
	}
	all := make([]sorted, len(s.Patterns))
	for i := range s.Patterns {
		all[i] = sorted{s.Patterns[i].Pattern.Text(), s.Patterns[i].Pattern.ID(), s.Patterns[i]}
	}
	slices.SortFunc(all, func(a, b sorted) int {
		return cmp.Or(cmp.Compare(b.count.Requests, a.count.Requests), strings.Compare(a.text, b.text),
			strings.Compare(a.id, b.id))
	})
	for i := range all {
		s.Patterns[i] = all[i].count
	}
}

// merge adds the counts of the same pattern.
func (c *Count) merge(o *Count) {
	c.Requests += o.Requests
	c.Keys += o.Keys
	c.Failed += o.Failed
	c.Bytes.Merge(&o.Bytes)
	c.Micros.Merge(&o.Micros)
	switch {
	case o.Replay == nil:
	case c.Replay == nil:
		c.Replay = o.Replay.clone()
	default:
		c.Replay.merge(o.Replay)
	}
}

// clone returns a copy with counts of its own.
func (c *Count) clone() Count {
	out := *c
	out.Bytes, out.Micros, out.Replay = c.Bytes.clone(), c.Micros.clone(), c.Replay.clone()
	return out
}
