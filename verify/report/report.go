package report

import (
	"time"

	"github.com/tailrace-cdc/replicator/verify"
)

// Verdict is what a comparison found about a table.
type Verdict string

// The verdicts.
const (
	Equal     Verdict = "equal"     // each item as of its own moment after the begin
	Different Verdict = "different" // an item differs or is refused by the mapping, or a cell is foreign
	Unproven  Verdict = "unproven"  // nothing is known to differ, and something could not be decided
)

// Proof is the evidence that Bigtable has every change up to the end of the comparison.
type Proof string

// The proofs.
const (
	Proven  Proof = "proven"  // heartbeats that were written after it came out of every open shard
	Assumed Proof = "assumed" // every shard was read past it, as far as empty reads show
)

// Table is the result of one source table.
type Table struct {
	Source    string    `json:"source"`
	Target    string    `json:"target"`
	Verdict   Verdict   `json:"verdict"`
	Items     int64     `json:"items"` // of the source
	Rows      int64     `json:"rows"`
	Cells     int64     `json:"cells"`
	Equal     int64     `json:"equal"`        // items
	ByLog     int64     `json:"equal_by_log"` // items that changed all the time; not in Equal
	Different int64     `json:"different"`    // items, also such that only the target has
	Kept      int64     `json:"kept"`         // cells that may remain without their item
	Foreign   int64     `json:"foreign"`      // cells of the target, counted at each of its tables
	Unproven  int64     `json:"unproven"`     // items and cells
	Refused   int64     `json:"refused"`      // items
	Began     time.Time `json:"began"`        // by the clock of DynamoDB
	Ended     time.Time `json:"ended"`
	Lagging   bool      `json:"lagging"` // the source was read with eventual consistency
	Proof     Proof     `json:"proof"`

	// Retired are source tables whose replication into the target has ended. Cells that no item of
	// a configured table can have are left out, because they may be the application's.
	Retired []string `json:"retired,omitempty"`

	// Of a sample.
	Sample int64  `json:"sample,omitempty"` // random items that were asked for; Items says how many were compared
	Seed   uint64 `json:"seed,omitempty"`

	// Of a comparison that counts only the items that have changed since a time. Full is when the
	// full one began to which it adds.
	Since time.Time `json:"since,omitzero"`
	Full  time.Time `json:"full,omitzero"`
	Why   string    `json:"why,omitempty"` // why a table is unproven although every item could be decided

	ByRule   []Group `json:"by_rule,omitempty"`   // what is not equal
	ByPrefix []Group `json:"by_prefix,omitempty"` // the same; only where data is shown

	open   int64   // items of the source that are not in Equal
	groups *groups // nil: nothing is counted by rule
}

// Add counts an item that was settled.
func (t *Table) Add(v *verify.Verdict) {
	t.Kept += int64(v.Kept)
	switch v.Status {
	case verify.Equal, verify.Kept:
		return
	case verify.EqualByLog:
		t.ByLog++
	case verify.Different:
		t.Different++
	case verify.Unproven:
		t.Unproven++
	case verify.Refused:
		t.Refused++
	}
	if !v.Absent {
		t.open++
	}
	if t.groups != nil && v.Status != verify.EqualByLog {
		t.groups.add(v)
	}
}

// AddCell counts a cell of the target without a known owner.
func (t *Table) AddCell(o *verify.Open) {
	if o.Kind == verify.Foreign {
		t.Foreign++
	} else {
		t.Unproven++
	}
	if t.groups != nil {
		t.groups.addCell(o)
	}
}

// Finish counts the items that are equal, and decides, when everything was added.
func (t *Table) Finish() {
	t.Equal = max(t.Items-t.open, 0)
	if t.groups != nil {
		t.ByRule, t.ByPrefix = sorted(t.groups.byRule, len(t.groups.byRule)), sorted(t.groups.byPrefix, shownPrefixes)
	}
	switch {
	case t.Different+t.Refused+t.Foreign > 0:
		t.Verdict = Different
	case t.Sample > 0 && t.Items == 0:
		t.Verdict = Unproven
	case t.Unproven > 0 || t.Why != "":
		t.Verdict = Unproven
	default:
		t.Verdict = Equal
	}
}
