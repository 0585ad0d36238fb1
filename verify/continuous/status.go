package continuous

import (
	"maps"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// Status is the progress of the passes and the known differences. It names no keys.
type Status struct {
	Cycles int64 `json:"cycles"` // finished: all items and all rows were compared so often
	Items  Side  `json:"items"`
	Rows   Side  `json:"rows"`
	Checks int64 `json:"settling"` // items that may differ and are not settled yet

	Different int64 `json:"different"` // items, also such that only the target has; cleared when they are equal again
	Foreign   int64 `json:"foreign"`   // cells that no guard of their row can own
	Kept      int64 `json:"kept"`      // cells that may remain without their item, in the last finished pass or this one
	Unproven  int64 `json:"unproven"`  // items that change all the time, and cells whose owner cannot be told
	Refused   int64 `json:"refused"`   // items that the mapping does not take

	// CheckedSince: every item and row was compared at least once since; null before the first
	// cycle is finished.
	CheckedSince   *time.Time `json:"checked_since"`
	LastDifference *time.Time `json:"last_difference"` // when one was last seen; null for never
	ReadUnits      float64    `json:"read_units"`      // that it may take a second
	UnitsUsed      float64    `json:"units_used"`      // since the start of the life
	Waits          string     `json:"waits,omitempty"` // why nothing is compared now
	File           string     `json:"file,omitempty"`  // where the differences are listed, on the owner's disk
}

// Side is how far one direction is.
type Side struct {
	Share    float64    `json:"share"` // of this pass, from 0 to 1
	Passes   int64      `json:"passes"`
	Compared int64      `json:"compared"` // in this pass
	Began    *time.Time `json:"began"`    // this pass, or the last one
}

// Status returns the counts.
func (v *Verifier) Status() *Status {
	usage := v.o.Budget.Usage()
	v.mu.Lock()
	defer v.mu.Unlock()
	s := &Status{
		Cycles: min(v.items.Finished, v.rows.Finished), Items: sideOf(&v.items.Pass), Rows: sideOf(&v.rows.Pass),
		Checks: int64(len(v.pending)), Different: v.more, Kept: max(v.rows.Kept, v.rows.LastKept),
		LastDifference: timeOf(v.last), ReadUnits: usage.Rate, UnitsUsed: usage.Used, Waits: v.waits,
	}
	if s.Cycles > 0 {
		s.CheckedSince = timeOf(min(v.items.Before, v.rows.Before))
	}
	for _, x := range v.open {
		switch x.verdict.Status {
		case verify.Different:
			s.Different++
		case verify.Refused:
			s.Refused++
		default:
			s.Unproven++
		}
	}
	for _, r := range v.cells {
		if r.looks >= confirmedLooks {
			s.Foreign += r.n
			s.Unproven += r.other
		}
	}
	return s
}

func sideOf(p *Pass) Side {
	began := p.Began
	if began == 0 {
		began = p.Before
	}
	return Side{Share: p.share(), Passes: p.Finished, Compared: p.Compared, Began: timeOf(began)}
}

func timeOf(ms change.Millis) *time.Time {
	if ms == 0 {
		return nil
	}
	t := ms.Time().UTC()
	return &t
}

// Differences returns what is not equal, in the form of a file of differences. It holds keys and
// values.
func (v *Verifier) Differences() (list []*report.Difference) {
	v.mu.Lock()
	defer v.mu.Unlock()
	target := v.o.Tables[0].Program.Table().Target
	for _, key := range slices.Sorted(maps.Keys(v.open)) {
		list = append(list, report.OfItem(v.table, target, &v.open[key].verdict))
	}
	for _, key := range slices.Sorted(maps.Keys(v.cells)) {
		for i := range v.cells[key].cells {
			if v.cells[key].looks >= confirmedLooks {
				list = append(list, report.OfCell(target, &v.cells[key].cells[i]))
			}
		}
	}
	return list
}
