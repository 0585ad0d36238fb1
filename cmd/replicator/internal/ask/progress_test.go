package ask

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/request"
)

// TestWaitingCommandSaysHowFarItIs also while no request is done, and why.
func TestWaitingCommandSaysHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		a := &Asker{
			Table: "Orders", Progress: Report(&out, "Orders"), Why: func(context.Context) string { return "it is stuck" },
		}
		n := &count{}
		n.asked.Store(7)
		stop := a.show(t.Context(), n)
		if err := failure.Pause(t.Context(), linePeriod+showPeriod/2); err != nil {
			t.Fatal(err)
		}
		n.asked.Store(9)
		n.done.Store(4)
		n.all.Store(true)
		if err := failure.Pause(t.Context(), linePeriod); err != nil {
			t.Fatal(err)
		}
		stop()
		const want = "Orders: 0 of 7 items done, more are being asked for; it is stuck\n" +
			"Orders: 4 of 9 items done; it is stuck\n"
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	})
}

// TestBarIsRemovedWhenTheCommandFails, here because the file of keys has a bad line.
func TestBarIsRemovedWhenTheCommandFails(t *testing.T) {
	ended, bad := false, errors.New("line 1 is no key")
	a := &Asker{Table: "Orders", Progress: func(p *Progress) { ended = p == nil }}
	items := func(yield func(request.Item, error) bool) { yield(request.Item{}, bad) }
	if _, err := a.Do(t.Context(), request.Resync, items); !errors.Is(err, bad) || !ended {
		t.Errorf("%v, progress ended: %v", err, ended)
	}
}
