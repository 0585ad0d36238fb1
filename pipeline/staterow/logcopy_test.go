package staterow

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// answers is a Store that gives one answer after the other, and then the last one.
type answers struct {
	Store
	rows []*bigtable.State // nil: there is no row
}

func (a *answers) LoadState(context.Context, string, string) (*bigtable.State, error) {
	row := a.rows[0]
	if len(a.rows) > 1 {
		a.rows = a.rows[1:]
	}
	if row == nil {
		return nil, bigtable.ErrNoState
	}
	return row, nil
}

// TestRowIsLookedForTwice: Rule 13. One answer that a row is not there is none; and a row that
// another process has changed is read again.
func TestRowIsLookedForTwice(t *testing.T) {
	known, other := &bigtable.State{Revision: 3}, &bigtable.State{Revision: 4}
	for name, c := range map[string]struct {
		rows        []*bigtable.State
		gone, stale bool
	}{
		"as it is known":           {rows: []*bigtable.State{known}},
		"not there, and there":     {rows: []*bigtable.State{nil, known}},
		"twice not there":          {rows: []*bigtable.State{nil, nil}, gone: true},
		"another one in its place": {rows: []*bigtable.State{other}, stale: true},
	} {
		r := New(Options{Source: "Orders", Store: &answers{rows: c.rows}, Logger: zap.NewNop()})
		r.stored, r.agreed = known, make(chan struct{})
		close(r.agreed)
		err := r.Look(t.Context(), nil)
		refused, stale := (*outcome.RefusedError)(nil), (*outcome.StaleError)(nil)
		gone := errors.As(err, &refused) && refused.Code == outcome.CodeRowMissing
		if gone != c.gone || errors.As(err, &stale) != c.stale || r.Stale() != (c.gone || c.stale) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRowIsMadeFromItsLog: with the life, the floor and the fence of the log, and a reservation
// above every version that was given out.
func TestRowIsMadeFromItsLog(t *testing.T) {
	const now = change.Millis(1_790_000_000_000)
	want := bigtable.Identity{Pipeline: "p", Table: "T", TableID: "1", MappingHash: "m", Target: "t"}
	s := checkpoint.NewState()
	s.Life, s.Identity = 4, &checkpoint.Identity{Pipeline: "p", Table: "T", TableID: "1", Mapping: "m"}
	s.Streams = []*checkpoint.Stream{{Mode: "trim_horizon", Floor: 77}}
	s.Marks = map[string]checkpoint.Mark{checkpoint.SinkBigtable: {}}
	s.DroppedVersion = change.Version(now) + 5_400_000
	s.Fence = &checkpoint.Fence{ID: "f", At: now}
	created := now.Time().Add(-time.Hour)
	f := Found{Want: want, Log: s, Created: created, Date: now, Lead: time.Minute, Start: Start{Horizon: true}}
	r, err := PlanRecovery(f)
	if err != nil || !r.Restores {
		t.Fatalf("%+v, %v", r, err)
	}
	want.LogCreated = created.UTC()
	row := r.next
	if row.Identity != want || row.Life != 4 || row.Floor != 77 || !row.Issued || row.Recovering ||
		row.Lead < 90*time.Minute+leastReserved || row.Fenced == nil || row.Fenced.ID != "f" {
		t.Errorf("%+v", row)
	}
	for says, edit := range map[string]func(f *Found){
		"deleted and created again": func(f *Found) { f.Want.TableID = "2" },
		"belongs to pipeline":       func(f *Found) { f.Want.Pipeline = "other" },
		"mapping of T is not":       func(f *Found) { f.Want.MappingHash = "n" },
		"was started without":       func(f *Found) { s.Marks = map[string]checkpoint.Mark{"archive": {}} },
	} {
		x := f
		edit(&x)
		if r, err := PlanRecovery(x); r != nil || err == nil {
			t.Errorf("%s: %+v, %v", says, r, err)
		}
	}
}
