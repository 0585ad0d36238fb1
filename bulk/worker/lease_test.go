package worker

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/delegation"
)

// owner is a daemon as a lease observes it.
type owner struct {
	order              delegation.Order
	away, silent, lags atomic.Bool
	unreadable, closed atomic.Bool
	began              time.Time
}

func (o *owner) read(context.Context) (*delegation.Seen, error) {
	switch {
	case o.away.Load():
		return nil, errors.New("away")
	case o.unreadable.Load():
		return nil, &delegation.NewerFormatError{Have: 9}
	}
	order := o.order
	if o.closed.Load() {
		order.Closed = 1
	}
	b := &delegation.Beat{Order: order.ID, Date: change.MillisOf(time.Now())}
	if o.silent.Load() {
		b.Date = change.MillisOf(o.began)
	}
	if o.lags.Load() {
		b.Lag = delegation.MostLag + 1
	}
	return &delegation.Seen{Order: &order, Beat: b, Life: order.Life}, nil
}

// TestLeaseInTime: what a process may do some time after something has changed. An attempt that
// may not be sent waits, and fails where that lasts.
func TestLeaseInTime(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*owner)
		after        time.Duration
		begin, fresh string // part of the error; "": permitted; "waits": neither
	}{
		"open":               {func(*owner) {}, time.Hour, "", ""},
		"closed":             {func(o *owner) { o.closed.Store(true) }, 16 * time.Second, "closed", "closed"},
		"cannot be read":     {func(o *owner) { o.unreadable.Store(true) }, 16 * time.Second, "closed", "closed"},
		"away for a moment":  {func(o *owner) { o.away.Store(true) }, 40 * time.Second, "", ""},
		"away":               {func(o *owner) { o.away.Store(true) }, 61 * time.Second, "waits", "waits"},
		"lag":                {func(o *owner) { o.lags.Store(true) }, 16 * time.Second, "waits", ""},
		"an owner is silent": {func(o *owner) { o.silent.Store(true) }, 6 * time.Minute, "waits", "waits"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &owner{order: delegation.Order{ID: "c.1", Life: 2}, began: time.Now()}
				l := newLease(&o.order, o.read)
				ctx, cancel := context.WithCancel(t.Context())
				go l.run(ctx)
				if err := l.mayBegin(ctx); err != nil { // waits for the first beats
					t.Fatal(err)
				}
				c.change(o)
				<-time.After(c.after)
				check := func(what, want string, call func(context.Context) error) {
					short, cancel := context.WithTimeout(ctx, time.Millisecond)
					defer cancel()
					err := call(short)
					waits := errors.Is(err, context.DeadlineExceeded)
					if want == "waits" != waits || !waits && (err == nil) != (want == "") ||
						!waits && err != nil && !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %v, want %q", what, err, want)
					}
				}
				check("a new item", c.begin, l.mayBegin)
				check("an attempt", c.fresh, l.fresh)
				if c.fresh == "waits" {
					began := time.Now()
					if err := l.fresh(ctx); err == nil || time.Since(began) != longestWait {
						t.Errorf("after %s: %v", time.Since(began), err)
					}
					o.away.Store(false)
					o.silent.Store(false)
					if err := l.mayBegin(ctx); err != nil {
						t.Errorf("it does not go on: %v", err)
					}
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// TestWorkerCarriesNoServer: a worker links neither NATS nor the daemon nor an engine.
func TestWorkerCarriesNoServer(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		for _, wrong := range []string{"nats-io/", "replicator/pipeline", "replicator/queue", "apache/beam"} {
			if strings.Contains(path, wrong) {
				t.Errorf("the worker carries %s", path)
			}
		}
	}
}
