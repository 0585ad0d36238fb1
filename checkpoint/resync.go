package checkpoint

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
)

// ResyncOrder requests a resync of the whole table: Bigtable is compared with it, and what differs
// is written again. Gaps are accepted with the order, and healed by it; without names these are all
// accepted gaps.
type ResyncOrder struct {
	ID   string   `json:"id"`
	Gaps []string `json:"gaps,omitempty"`
}

// PendingResync is a resync of the whole table that is not complete.
type PendingResync struct {
	ID      string         `json:"id"`
	Gaps    []string       `json:"gaps,omitempty"`    // that it heals
	Recover bool           `json:"recover,omitempty"` // the life began with it
	Above   change.Version `json:"above,omitempty"`   // versions that it writes must be greater
	Asked   change.Millis  `json:"asked"`
}

// Heals reports whether the resync is to heal a gap.
func (p *PendingResync) Heals(gap string) bool { return slices.Contains(p.Gaps, gap) }

// Healed ends a resync of the whole table: every difference was repaired, and found equal
// afterwards.
type Healed struct {
	ID     string            `json:"id"`
	Gaps   []string          `json:"gaps,omitempty"`
	Sinks  map[string]string `json:"sinks"` // that are healed, each with what is still missing in it; "" for nothing
	Result ResyncResult      `json:"result"`
	Date   change.Millis     `json:"date"`
	// Exports are the ids of incremental exports: the sinks were healed from them, and no resync
	// ends.
	Exports []string `json:"exports,omitempty"`
}

// ResyncResult counts items by what a resync found and did.
type ResyncResult struct {
	Items    int64 `json:"items"`
	Written  int64 `json:"written"`
	Equal    int64 `json:"equal"`
	Left     int64 `json:"left"`    // rows that the item had left
	Hot      int64 `json:"hot"`     // items that are changed too often to be written yet
	Letters  int64 `json:"letters"` // items that the mapping or Bigtable refuse
	Unproven int64 `json:"unproven"`
	Unowned  int64 `json:"unowned,omitempty"` // cells that no guard assigns to an item
}

// Healing is a gap's entry about one sink.
type Healing struct {
	At   change.Millis `json:"at"`
	Note string        `json:"note,omitempty"` // what is still missing
}

// orderResync notes a resync of the whole table. One that is pending begins again, and heals the
// gaps of both. The same order again changes nothing. An order without an id is ignored: no entry
// could end it and not another one.
func (s *State) orderResync(b *ResyncOrder, at change.Millis) {
	if b.ID == "" {
		return
	}
	next := &PendingResync{ID: b.ID, Asked: max(at, s.Date), Above: s.TopClock()}
	if old := s.Resync; old != nil {
		next.Gaps, next.Recover, next.Above = old.Gaps, old.Recover, max(next.Above, old.Above)
	}
	for i := range s.Gaps {
		g := &s.Gaps[i]
		id := g.ID()
		named := slices.Contains(b.Gaps, id)
		if named {
			s.acceptGap(g)
		}
		if g.Accepted && (named || len(b.Gaps) == 0) && s.BigtableDiffers(g) &&
			!slices.Contains(next.Gaps, id) {
			next.Gaps = append(next.Gaps, id)
		}
	}
	if old := s.Resync; old == nil || old.ID != next.ID || len(next.Gaps) > len(old.Gaps) {
		s.Resync = next
	}
}

// applyHealed ends the resync that it names. One that was replaced meanwhile goes on, and so does
// one that was ordered again under its id: what the entry does not name is still to be healed.
func (s *State) applyHealed(b *Healed) {
	s.Date = max(s.Date, b.Date)
	ofExports := len(b.Exports) > 0
	if !ofExports && (s.Resync == nil || s.Resync.ID != b.ID) {
		return
	}
	for i := range s.Gaps {
		g := &s.Gaps[i]
		if id := g.ID(); !slices.Contains(b.Gaps, id) || !ofExports && !s.Resync.Heals(id) {
			continue
		}
		for sink, note := range b.Sinks {
			if g.Healed == nil {
				g.Healed = map[string]Healing{}
			}
			g.Healed[sink] = Healing{At: b.Date, Note: note}
		}
	}
	if ofExports {
		return
	}
	s.LastResync, s.notCopied = b, 0
	rest := *s.Resync
	rest.Gaps = slices.DeleteFunc(slices.Clone(rest.Gaps), func(id string) bool { return slices.Contains(b.Gaps, id) })
	if s.Resync = nil; len(rest.Gaps) > 0 {
		s.Resync = &rest
	}
}
