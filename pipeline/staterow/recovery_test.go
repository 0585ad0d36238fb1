package staterow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// TestNewLifeBeginsAboveEveryVersion: Rule 5. What the life before may have given out is below the
// service's clock, its skew and the reservation, or below its own floor. The row names the log that
// is left, and that no version was given out since.
func TestNewLifeBeginsAboveEveryVersion(t *testing.T) {
	const now = change.Millis(1_790_000_000_000)
	created, id := now.Time().UTC().Add(-time.Hour), bigtable.Identity{Pipeline: "p", Table: "T", MappingHash: "m"}
	id.LogCreated = created
	for name, c := range map[string]struct {
		floor       change.Version // of the life before
		lead, least time.Duration  // its reservation; that of the configuration
		log         time.Time      // when the log was created that is there; zero: there is none
		above       time.Duration  // of the floor above the clock
		old         time.Time
	}{
		"the reservation":             {0, time.Hour, time.Minute, time.Time{}, time.Hour + 31*time.Second, created},
		"that of the configuration":   {0, time.Minute, time.Hour, time.Time{}, time.Hour + 31*time.Second, created},
		"the floor of the one before": {change.Version(now) + 7_200_000, time.Hour, 0, time.Time{}, 2 * time.Hour, created},
		"another log": {0, time.Hour, time.Minute, created.Add(time.Minute), time.Hour + 31*time.Second,
			created.Add(time.Minute)},
	} {
		row := &bigtable.State{Identity: id, Life: 4, Floor: c.floor, Lead: c.lead, Issued: true}
		want := id
		want.LogCreated = c.log
		r, err := PlanRecovery(Found{Row: row, Want: want, Created: c.log, Date: now, Lead: c.least})
		if err != nil || r == nil || r.Begun {
			t.Errorf("%s: %+v, %v", name, r, err)
			continue
		}
		floor := change.Version(now) + change.Version(c.above.Milliseconds())
		next := &bigtable.State{Identity: id, Life: 5, Floor: floor, Lead: c.above + c.least, Recovering: true, OldLog: c.old}
		d := cmp.Diff(next, r.next, cmpopts.IgnoreUnexported(bigtable.State{}))
		if d != "" || r.Floor != floor || r.row != row {
			t.Errorf("%s: floor %d (-want +got):\n%s", name, r.Floor, d)
		}
	}
}

// TestRecoveryIsRefusedWhereItWouldNotHelp: or would write over what the application has written,
// Rule 12.
func TestRecoveryIsRefusedWhereItWouldNotHelp(t *testing.T) {
	id := bigtable.Identity{Pipeline: "p", Table: "T", TableID: "1", MappingHash: "m", Target: "t"}
	for says, edit := range map[string]func(*Found){
		"has no row for T in tailrace_state, nor a log": func(f *Found) { f.Row = nil },
		"cannot be read: torn": func(f *Found) {
			f.Row, f.Created, f.FoldErr = nil, time.Unix(9, 0), errors.New("torn")
		},
		"holds nothing of T":     func(f *Found) { f.Row, f.Want.Target = nil, "" },
		"cutover f1":             func(f *Found) { f.Row.Fenced = &bigtable.Fenced{ID: "f1"} },
		"was deleted and create": func(f *Found) { f.Want.TableID = "2" },
		"is not the one its row": func(f *Found) { f.Want.MappingHash = "other" },
	} {
		f := Found{Row: &bigtable.State{Identity: id, Life: 1, Issued: true}, Want: id}
		edit(&f)
		if r, err := PlanRecovery(f); r != nil || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v, %v, want an error that says %q", r, err, says)
		}
	}
	f := Found{Row: &bigtable.State{Identity: id, Life: 3, Floor: 9, Lead: time.Hour, Recovering: true}, Want: id}
	if r, err := PlanRecovery(f); err != nil || !r.Begun || r.Life != 3 || r.Floor != 9 || r.Lead != time.Hour {
		t.Errorf("one that has begun: %+v, %v", r, err)
	}
}

// TestLogThatWasReadOnWithoutTheRowIsRefused: when the row is known at last, and says that the log
// is an old one, or that there is no row.
func TestLogThatWasReadOnWithoutTheRowIsRefused(t *testing.T) {
	for says, stored := range map[string]*bigtable.State{
		rowMissing: nil, "the pipeline is in life 2": {Life: 2},
		"cutover of table": {Life: 1, Fenced: &bigtable.Fenced{ID: "f"}},
	} {
		r := New(Options{Target: "orders", Retry: time.Millisecond})
		r.stored, r.fence = stored, &checkpoint.Fence{ID: "other"}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // so that the end of an undo is not waited for
		err := r.agreeLater(ctx, 1, nil, source.TableInfo{})
		if refused := (*outcome.RefusedError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want a refusal that says %q", err, says)
		}
	}
}
