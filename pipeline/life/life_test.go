package life

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
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

// TestErrorOfTheWriterIsNotHidden: sinks that end because of it return an error of their own.
func TestErrorOfTheWriterIsNotHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := begin(t, time.Minute)
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
// and says so. The time begins when the life is left.
func TestDrainHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, leaving := begin(t, 25*time.Second)
		began := time.Now()
		time.AfterFunc(time.Hour, func() { leaving.Leave("") })
		err := l.Run(func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, Part{Ends: Applying, Run: (&ledger{}).until("applying")})
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
