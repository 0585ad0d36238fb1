package pipeline

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
)

// TestLogsAreHandedOverEightAtATime: the other tables of a process that ends work on until it is
// their turn, or half of the time to end is over. A log that nobody takes over ends at once.
func TestLogsAreHandedOverEightAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		p := &Pipeline{o: Options{Periods: Periods{Shutdown: 20 * time.Second}}, successors: map[string]string{}}
		p.turns = make(chan struct{}, handedOverAtOnce)
		p.leaving.Do(func() {}) // the successors are decided
		var mu sync.Mutex       // covers left and alone
		left, alone, tables := map[string]bool{}, false, []*table{}
		count := func() int {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return len(left)
		}
		for i := range n - 1 {
			p.successors[fmt.Sprint("T", i+1)] = "other"
		}
		for i := range n {
			x := &table{env: &env{Table: Table{Source: fmt.Sprint("T", i)}}, ended: make(chan struct{})}
			tables = append(tables, x)
			go p.end(x, func(to string) {
				mu.Lock()
				defer mu.Unlock()
				if left[x.Source] = to == "other"; i == 0 {
					alone = to == ""
				}
			})
		}
		if n := count(); n != 9 {
			t.Errorf("%d of 20 tables end at once, want eight that are handed over and one that is not", n)
		}
		mu.Lock()
		if !alone {
			t.Error("the table that nobody takes over waits for its turn")
		}
		for _, x := range tables[1:] {
			if left[x.Source] {
				close(x.ended)
				break
			}
		}
		mu.Unlock()
		if n := count(); n != 10 {
			t.Errorf("%d of 20 tables have ended or end, when one has been handed over, want 10", n)
		}
		_ = failure.Pause(t.Context(), 10*time.Second)
		if got := count(); got != n {
			t.Errorf("%d of 20 tables end at half of the time", got)
		}
		for _, x := range tables {
			select {
			case <-x.ended:
			default:
				close(x.ended)
			}
		}
	})
}

// TestReasonOfAHaltIsStoredAfterTheLogWasReadAgain: what is stored is unknown when the end of a
// life cuts an append off, as here, where a command has stored an entry.
func TestReasonOfAHaltIsStoredAfterTheLogWasReadAgain(t *testing.T) {
	_, x, w := ownedTable(t, Options{})
	log := x.currentLog()
	if _, err := log.AppendControl(t.Context(), &checkpoint.Control{Pause: new(true)}); err != nil { // by a command
		t.Fatal(err)
	}
	x.releaseHalted(w, outcome.Outcome{Code: outcome.CodeRowMissing, Reason: "the row is gone"})
	s, err := log.Fold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if h := s.AllHalts()[checkpoint.SinkPipeline]; h == nil || h.Code != outcome.CodeRowMissing || !s.Released {
		t.Errorf("halt %+v, released %v", h, s.Released)
	}
}

// TestPausedTableIsHandedOverAndSaved: nothing was read since, so the log has the newest marks. A
// table that stands still because it is paused is not halted.
func TestPausedTableIsHandedOverAndSaved(t *testing.T) {
	_, x, w := ownedTable(t, Options{})
	x.view.publish(func(s *snapshot) { s.halt = &checkpoint.Halt{} })
	ctx, leaving := life.WithLeaving(t.Context(), nil)
	x.yielding.Store(leaving)
	leaving.Leave("b")
	if err := x.paused(ctx, w); err != nil {
		t.Fatal(err)
	}
	s, err := x.currentLog().Fold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if now := x.view.latest(); !s.Released || s.ReleasedTo != "b" || !now.saved || now.halt != nil {
		t.Errorf("released %t to %q, saved %t, halt %+v", s.Released, s.ReleasedTo, now.saved, now.halt)
	}
}

// TestPausedTableThatEndsDuringABeatIsSaved: the end may cut off an append, and the owner may not
// know yet what a command has stored. Of a beat and an end at the same time either comes first.
func TestPausedTableThatEndsDuringABeatIsSaved(t *testing.T) {
	_, x, w := ownedTable(t, Options{Periods: Periods{Beat: 1}})
	for range 20 {
		if _, err := x.currentLog().AppendControl(t.Context(), &checkpoint.Control{Pause: new(true)}); err != nil {
			t.Fatal(err)
		}
		ctx, leaving := life.WithLeaving(t.Context(), nil)
		x.yielding.Store(leaving)
		leaving.Leave("")
		x.view.publish(func(s *snapshot) { s.saved = false })
		if err := x.paused(ctx, w); err != nil || !x.view.latest().saved {
			t.Fatalf("%v, saved %t", err, x.view.latest().saved)
		}
		var err error
		if w, err = x.currentLog().Claim(t.Context(), queue.ClaimOptions{Owner: "a"}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHaltThatFollowsFromTheRowIsShownUntilTheRowIsKnown: other halts are over once a beat is
// stored.
func TestHaltThatFollowsFromTheRowIsShownUntilTheRowIsKnown(t *testing.T) {
	for _, c := range []struct {
		code  string
		known bool
		want  bool // it is still shown
	}{
		{outcome.CodeRowMissing, false, true}, {outcome.CodeRowMissing, true, false}, {outcome.CodeMissing, false, false},
	} {
		v := &tableView{}
		v.publish(func(s *snapshot) { s.halt = &checkpoint.Halt{Code: c.code} })
		if v.beating(c.known); (v.latest().halt != nil) != c.want {
			t.Errorf("%+v: %+v", c, v.latest().halt)
		}
	}
}
