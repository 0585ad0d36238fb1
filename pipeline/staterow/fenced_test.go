package staterow

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// A log is used with a fenced row only if it holds the very fence. The refusal of a log that is
// there says how the cutover goes on; that of a lost one, that the rows may belong to the
// application.
func TestLogOfAFencedRowMustHoldItsFence(t *testing.T) {
	id := bigtable.Identity{Pipeline: "shop", Table: "Orders", TableID: "t1", MappingHash: "m"}
	row := func(fence string) *bigtable.State {
		s := &bigtable.State{Identity: id, Life: 1}
		if fence != "" {
			s.Fenced = &bigtable.Fenced{ID: fence, Time: time.Unix(1_700_000_000, 0)}
		}
		return s
	}
	log := func(fence string) *checkpoint.State {
		s := checkpoint.NewState()
		s.Seq, s.Life, s.Identity = 7, 1, &checkpoint.Identity{Pipeline: "shop", Table: "Orders", TableID: "t1", Mapping: "m"}
		if fence != "" {
			s.Fence = &checkpoint.Fence{ID: fence, Seq: 5}
		}
		return s
	}
	for name, c := range map[string]struct {
		row        *bigtable.State
		log        *checkpoint.State
		what, hint string // "": it may be used
	}{
		"not fenced":                      {row(""), log(""), "", ""},
		"the same fence":                  {row("f1"), log("f1"), "", ""},
		"undone in the row":               {row(""), log("f1"), "", ""},
		"another fence":                   {row("f1"), log("f2"), "in progress", "cutover --undo"},
		"not in the log yet":              {row("f1"), log(""), "in progress", "`replicator cutover` again"},
		"the log is empty or not there":   {row("f1"), checkpoint.NewState(), "log is lost", "may belong to the application"},
		"no row, as before a first start": {nil, checkpoint.NewState(), "", ""},
	} {
		refused := CheckLog(c.row, c.log, id, Start{})
		switch {
		case (refused == nil) != (c.what == ""):
			t.Errorf("%s: %+v", name, refused)
		case refused != nil && (!strings.Contains(refused.What, c.what) || !strings.Contains(refused.Hint, c.hint)):
			t.Errorf("%s: %+v", name, refused)
		}
	}
}

// TestRowIsReadAgainWhereTheLogHasAnotherFence: and nothing is applied before that. A row that says
// the same is enough.
func TestRowIsReadAgainWhereTheLogHasAnotherFence(t *testing.T) {
	stop, cancel := context.WithCancel(t.Context())
	cancel() // so that nothing is waited for
	fence := func(id string) *checkpoint.Fence {
		if id == "" {
			return nil
		}
		return &checkpoint.Fence{ID: id}
	}
	for _, c := range []struct {
		row, log      string // fences
		read, refused bool
	}{
		{"", "", false, false}, {"f1", "f1", false, false}, {"f1", "f2", true, true}, {"f1", "", true, true},
		{"", "f1", true, false},
	} {
		stored := &bigtable.State{Life: 1, Lead: time.Hour}
		if c.row != "" {
			stored.Fenced = &bigtable.Fenced{ID: c.row}
		}
		r := New(Options{Lead: time.Minute, Retry: time.Second})
		r.stored, r.agreed = stored, make(chan struct{})
		r.reserved.Store(int64(stored.Lead))
		close(r.agreed)
		r.NoteFence(fence(c.log))
		lead := time.Hour // without the row: what every row allows
		if c.read {
			lead = time.Minute
		}
		if r.Stale() != c.read || r.Agrees() == c.read || r.reserved.Load() != int64(lead) {
			t.Errorf("row %q, log %q: stale %v, agrees %v", c.row, c.log, r.Stale(), r.Agrees())
		}
		if err := r.checkFence(stop); (err != nil) != c.refused {
			t.Errorf("row %q, log %q: %v", c.row, c.log, err)
		}
		unknown := New(Options{})
		unknown.NoteFence(fence(c.log)) // no row is known: it is read anyway
		stale := New(Options{})
		stale.stored, stale.stale, stale.agreed = stored, true, make(chan struct{})
		agreed := stale.agreed
		if stale.NoteFence(fence(c.log)); stale.agreed != agreed || unknown.Stale() {
			t.Errorf("row %q, log %q: who waits for a row that is read already waits for another", c.row, c.log)
		}
	}
}

// TestFenceIsLookedForBeforeALostLog: a recovery of a fenced table would write over the
// application's rows (Rule 12).
func TestFenceIsLookedForBeforeALostLog(t *testing.T) {
	fence := &bigtable.Fenced{ID: "f1", Time: time.Unix(1_700_000_000, 0)}
	for name, c := range map[string]struct {
		row  *bigtable.State
		hint string // "": it may begin a log
	}{
		"never started":           {nil, ""},
		"nothing was read yet":    {&bigtable.State{}, ""},
		"changes were read":       {&bigtable.State{Issued: true}, "`replicator recover"},
		"and the table is fenced": {&bigtable.State{Issued: true, Fenced: fence}, "`replicator cutover --undo`"},
		"fenced before all":       {&bigtable.State{Fenced: fence}, "`replicator cutover --undo`"},
	} {
		refused := CheckLost(c.row)
		if (refused == nil) != (c.hint == "") || refused != nil && !strings.Contains(refused.Hint, c.hint) {
			t.Errorf("%s: %+v, want a hint with %q", name, refused, c.hint)
		}
	}
}
