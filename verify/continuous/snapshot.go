package continuous

import (
	"maps"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify"
)

// Snapshot is what a later Verifier needs to go on: the passes, and what is known to differ. It
// holds keys.
type Snapshot struct {
	Items  Pass          `json:"items"`
	Rows   Pass          `json:"rows"`
	Last   change.Millis `json:"last_difference"`
	Open   []SavedItem   `json:"open,omitempty"`
	Cells  []SavedRow    `json:"cells,omitempty"`
	Unkept int64         `json:"unkept"` // differences of this pass beyond those in Open
}

// SavedItem is an item that was settled and is not equal.
type SavedItem struct {
	Key    string        `json:"key"`
	Status verify.Status `json:"status"`
	Kinds  []verify.Kind `json:"kinds,omitempty"`
	Rows   [][]byte      `json:"rows,omitempty"`
}

// SavedRow is a row with cells without a known owner.
type SavedRow struct {
	Row      []byte `json:"row"`
	Foreign  int64  `json:"foreign"`
	Unproven int64  `json:"unproven"`
}

// Snapshot returns where the Verifier is. Candidates that are not settled are among the open items.
func (v *Verifier) Snapshot() *Snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := &Snapshot{Items: v.items.Pass, Rows: v.rows.Pass, Last: v.last, Unkept: v.more}
	for _, key := range slices.Sorted(maps.Keys(v.open)) {
		x := &v.open[key].verdict
		s.Open = append(s.Open, SavedItem{key, x.Status, x.Kinds, x.Rows})
	}
	for _, waiting := range []map[string]*verify.Candidate{v.pending, v.settling} {
		for _, key := range slices.Sorted(maps.Keys(waiting)) {
			if v.open[key] == nil {
				s.Open = append(s.Open, SavedItem{key, "", waiting[key].Kinds, waiting[key].Rows})
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v.cells)) {
		if r := v.cells[key]; r.looks >= confirmedLooks {
			s.Cells = append(s.Cells, SavedRow{[]byte(key), r.n, r.other})
		}
	}
	return s
}

// restore goes on at a snapshot. What was known to differ counts until it is settled again, which
// is due now.
func (v *Verifier) restore(s *Snapshot) {
	v.items.Pass, v.rows.Pass, v.last, v.more = s.Items, s.Rows, s.Last, s.Unkept
	for i := range s.Open {
		x := &s.Open[i]
		if x.Status == "" {
			v.pending[x.Key] = &verify.Candidate{Key: x.Key, Rows: x.Rows, Kinds: x.Kinds}
			continue
		}
		verdict := verify.Verdict{Key: x.Key, Status: x.Status, Rows: x.Rows} // without Kinds: it will be listed anew
		v.open[x.Key] = &openItem{verdict: verdict, due: time.Now()}
	}
	for _, r := range s.Cells {
		v.cells[string(r.Row)] = &openRow{n: r.Foreign, other: r.Unproven, looks: confirmedLooks, due: time.Now()}
	}
}
