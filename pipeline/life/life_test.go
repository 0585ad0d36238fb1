package life

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"go.uber.org/zap"
)

// ledger notes what happens, in order.
type ledger struct {
	mu  sync.Mutex
	all []string
}

func (l *ledger) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, what)
}

// until is a part that ends with its context.
func (l *ledger) until(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		l.note(name + " ends")
		return nil
	}
}

func begin(t *testing.T, drain time.Duration) (*Life, *Leaving) {
	t.Helper()
	_, leaving := WithLeaving(t.Context(), nil)
	l := New(leaving, drain)
	l.Logger = zap.NewNop()
	return l, leaving
}

// TestLeavingEndsInStages: the last marks of copies are stored while the writer still takes
// entries, the drain begins when nothing more is read, and what applies ends last. Each step is
// slow, so a step that did not wait for the one before would overtake it.
func TestLeavingEndsInStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen ledger
		slowly := func(what string) {
			_ = failure.Pause(t.Context(), time.Second)
			seen.note(what)
		}
		l, leaving := begin(t, time.Minute)
		read := make(chan struct{})
		writer := func(context.Context) error {
			<-read
			slowly("drained")
			return nil
		}
		parts := []Part{
			{Ends: Applying, Run: seen.until("applying")},
			{Ends: Reading, Run: func(ctx context.Context) error {
				defer close(read)
				return seen.until("reading")(ctx)
			}},
			{Ends: Copying, Run: func(ctx context.Context) error {
				<-ctx.Done()
				slowly("copy ends")
				return nil
			}, Save: func(ctx context.Context) error {
				if ctx.Err() != nil {
					t.Error("a copy cannot save any more")
				}
				slowly("copy is saved")
				return nil
			}},
		}
		go leaving.Leave("other")
		if err := l.Run(writer, parts...); err != nil {
			t.Fatal(err)
		}
		want := []string{"copy ends", "copy is saved", "reading ends", "drained", "applying ends"}
		if diff := cmp.Diff(want, seen.all); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if to := l.Successor(); to != "other" {
			t.Errorf("successor %q", to)
		}
	})
}

// TestFailureEndsEveryPart: what a part returns ends the life at once. It is returned, also when
// the life was left meanwhile, and no copy is saved that has failed.
func TestFailureEndsEveryPart(t *testing.T) {
	for _, ends := range []Stage{Copying, Reading, Applying} {
		for _, left := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				l, leaving := begin(t, time.Minute)
				failed := errors.New("the log is lost")
				parts := []Part{{Ends: ends, Run: func(context.Context) error {
					if left {
						leaving.Leave("")
					}
					return failed
				}, Save: func(context.Context) error {
					t.Error("what failed is saved")
					return nil
				}}}
				for _, stage := range []Stage{Copying, Reading, Applying} {
					parts = append(parts, Part{Ends: stage, Run: func(ctx context.Context) error {
						<-ctx.Done()
						return ctx.Err()
					}})
				}
				writer := func(ctx context.Context) error {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				if err := l.Run(writer, parts...); !errors.Is(err, failed) {
					t.Errorf("stage %d, left %t: %v", ends, left, err)
				}
			})
		}
	}
}

// TestCanceledPartsAreNoFailureOfALeftLife: a part may return the end of its context. Without a
// planned end that is an error as any other.
func TestCanceledPartsAreNoFailureOfALeftLife(t *testing.T) {
	for _, left := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, leaving := begin(t, time.Minute)
			if left {
				leaving.Leave("")
			}
			err := l.Run(func(context.Context) error { return nil }, Part{Ends: Reading, Run: func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}})
			if errors.Is(err, context.Canceled) == left || left && err != nil {
				t.Errorf("left %t: %v", left, err)
			}
		})
	}
}

// TestNoPartOutlivesTheWriter: a writer that returns without an error has drained, so what the
// parts still read would be in nothing.
func TestNoPartOutlivesTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen ledger
		l, _ := begin(t, time.Minute)
		err := l.Run(func(context.Context) error { return nil }, Part{Ends: Copying, Run: seen.until("copying")},
			Part{Ends: Reading, Run: seen.until("reading")}, Part{Ends: Applying, Run: seen.until("applying")})
		if err != nil || len(seen.all) != 3 {
			t.Errorf("%v, %q", err, seen.all)
		}
	})
}

// TestErrorOfTheWriterIsNotHidden: sinks that end because of it return an error of their own.
func TestErrorOfTheWriterIsNotHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := begin(t, time.Minute)
		stop := l.stopApplying
		l.stopApplying = func() {
			stop()
			synctest.Wait() // a sink that ended because of this has returned
		}
		lost := errors.New("the log is lost")
		err := l.Run(func(context.Context) error { return lost }, Part{Ends: Applying, Run: func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("the sink ended")
		}})
		if !errors.Is(err, lost) {
			t.Errorf("%v, want the writer's error", err)
		}
	})
}

// TestDrainHasItsTime: a writer that does not get the log applied is ended after the time to drain,
// and says so. The time begins when the life is left, and not when copies are saved at last.
func TestDrainHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, leaving := begin(t, 25*time.Second)
		began := time.Now()
		time.AfterFunc(time.Hour, func() { leaving.Leave("") })
		err := l.Run(func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, Part{Ends: Applying, Run: (&ledger{}).until("applying")}, Part{
			Ends: Copying,
			Run:  (&ledger{}).until("copy"),
			Save: func(ctx context.Context) error { // the log takes nothing
				<-ctx.Done()
				return nil
			},
		})
		if took := time.Since(began); !errors.Is(err, errDrainTime) || took != time.Hour+25*time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// TestFirstLeaveCounts: a log that is being handed over goes there, whatever is asked for
// afterwards; the process that goes on with all logs of another one gets those that have no
// successor of their own.
func TestFirstLeaveCounts(t *testing.T) {
	run, all := WithLeaving(t.Context(), nil)
	first, one := WithLeaving(run, all)
	_, two := WithLeaving(run, all)
	one.Leave("b")
	one.Leave("c")
	if first.Err() == nil {
		t.Error("its context goes on")
	}
	all.Leave("d")
	two.Leave("e")
	for i, c := range []struct {
		l    *Leaving
		want string
	}{{one, "b"}, {all, "d"}, {two, "d"}} {
		select {
		case <-c.l.Left():
		default:
			t.Errorf("%d: not left", i)
		}
		if to := c.l.Successor(); to != c.want {
			t.Errorf("%d goes to %q, want %q", i, to, c.want)
		}
	}
}

// TestMayWriteEndsWithWhatApplies: a sink that waits until its claim holds again ends when the log
// is drained, although the claim never holds.
func TestMayWriteEndsWithWhatApplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, leaving := begin(t, time.Minute)
		l.Claim = lost{}
		go leaving.Leave("")
		drained := func(context.Context) error {
			return failure.Pause(t.Context(), time.Second)
		}
		began := time.Now()
		time.AfterFunc(time.Hour, l.Close) // it would wait for ever
		err := l.Run(drained, Part{Ends: Applying, Run: func(context.Context) error { return l.MayWrite() }})
		if took := time.Since(began); err != nil || took > time.Second+claimPause {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// lost is a claim that another process may have taken.
type lost struct{}

func (lost) ClaimValid() bool { return false }

// TestFactsOfALog: gaps that are accepted, or that a resync heals already, are not ordered again,
// and only damage that stops sinks begins a life again.
func TestFactsOfALog(t *testing.T) {
	shard := checkpoint.Gap{Feed: change.Feed{Stream: "a", Shard: "b"}, Since: 1000, Until: 2000, Found: 9000}
	damage := checkpoint.Gap{Since: 3000, Until: 4000, Found: 9000, Sinks: []string{checkpoint.SinkBigtable}}
	accepted := damage
	accepted.Accepted = true
	healed := &checkpoint.Healed{ID: "before", Date: 500}
	l := New(nil, 0)
	defer l.Close()
	for _, c := range []struct {
		name    string
		gaps    []checkpoint.Gap
		heals   bool
		toHeal  int
		damaged bool
	}{
		{name: "none"},
		{"of a shard", []checkpoint.Gap{shard}, false, 1, false},
		{"of a shard and damage", []checkpoint.Gap{damage, shard}, false, 2, true},
		{"accepted damage", []checkpoint.Gap{accepted}, false, 1, false},
		{"being healed", []checkpoint.Gap{damage}, true, 0, false},
	} {
		marks := map[string]checkpoint.Mark{checkpoint.SinkBigtable: {Seq: 5}}
		s := &checkpoint.State{Gaps: c.gaps, Marks: marks, LastResync: healed}
		s.Watermarks = []checkpoint.Watermark{{Seq: 4, Time: 4000}, {Seq: 5, Time: 5000}, {Seq: 6, Time: 6000}}
		if c.heals {
			s.Resync = &checkpoint.PendingResync{ID: "now", Gaps: []string{c.gaps[0].ID()}}
		}
		l.Observe(s)
		f := l.Facts()
		if len(f.ToHeal) != c.toHeal || f.Damaged != c.damaged || f.Resync != s.Resync || f.Resynced != healed {
			t.Errorf("%s: %+v", c.name, f)
		}
		if l.GapsUntil() != s.GapsUntil() {
			t.Errorf("%s: gaps until %d", c.name, l.GapsUntil())
		}
		if f.Applied != s.AppliedAt(marks[checkpoint.SinkBigtable].Seq) || f.Applied == 0 {
			t.Errorf("%s: Bigtable has every change up to %d", c.name, f.Applied)
		}
	}
}

// TestBehindIsUnknownBeforeTheFirstProof: a copy that does not know how old Bigtable is does not
// wait for it; Prove does.
func TestBehindIsUnknownBeforeTheFirstProof(t *testing.T) {
	l := New(nil, 0)
	defer l.Close()
	l.Now = func() change.Millis { return 10_000 }
	for applied, want := range map[change.Millis]time.Duration{0: 0, 4_000: 6 * time.Second, 11_000: 0} {
		l.facts.Store(&Facts{Applied: applied})
		if got := l.Behind(); got != want {
			t.Errorf("applied up to %d: %s behind, want %s", applied, got, want)
		}
	}
}
