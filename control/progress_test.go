package control

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/request"
)

// TestWaitingCommandShowsHowFarItIs also while no request is done, and why.
func TestWaitingCommandShowsHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []RequestProgress
		a := &Requester{
			Table: "Orders", Why: func(context.Context) string { return "it is stuck" },
			Progress: func(p *RequestProgress) {
				if p != nil {
					seen = append(seen, *p)
				}
			},
		}
		n := &count{}
		n.asked.Store(7)
		stop := a.show(t.Context(), n)
		if err := failure.Pause(t.Context(), showPeriod*3/2); err != nil {
			t.Fatal(err)
		}
		n.asked.Store(9)
		n.done.Store(4)
		n.all.Store(true)
		if err := failure.Pause(t.Context(), showPeriod); err != nil {
			t.Fatal(err)
		}
		stop()
		want := []RequestProgress{{Asked: 7, Why: "it is stuck"}, {Done: 4, Asked: 9, All: true, Why: "it is stuck"}}
		if !slices.Equal(seen, want) {
			t.Errorf("%+v, want %+v", seen, want)
		}
	})
}

// TestBarIsRemovedWhenTheCommandFails, here because the file of keys has a bad line.
func TestBarIsRemovedWhenTheCommandFails(t *testing.T) {
	ended, bad := false, errors.New("line 1 is no key")
	a := &Requester{Table: "Orders", Progress: func(p *RequestProgress) { ended = p == nil }}
	items := func(yield func(request.Item, error) bool) { yield(request.Item{}, bad) }
	if _, err := a.Do(t.Context(), request.Resync, items); !errors.Is(err, bad) || !ended {
		t.Errorf("%v, progress ended: %v", err, ended)
	}
}
