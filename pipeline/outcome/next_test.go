package outcome

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/queue"
)

// `status --wait` requests a beat every second. A table that halted before it claimed its log must
// not be tried again for that, only when somebody has written into the log.
func TestRequestsAloneDoNotEndTheWait(t *testing.T) {
	var (
		requests = make(chan struct{}) // not buffered: a request that is taken shows that the wait goes on
		asked    = make(chan uint64)
		failing  = errors.New("no answer")
		ended    = make(chan bool)
	)
	newest := func(context.Context) (queue.Info, error) {
		if n := <-asked; n > 0 {
			return queue.Info{Last: n}, nil
		}
		return queue.Info{}, failing
	}
	go func() { ended <- AwaitNext(t.Context(), time.Hour, requests, newest) }()
	select {
	case asked <- 7:
	case requests <- struct{}{}:
		t.Fatal("a request is compared with nothing")
	}
	for _, n := range []uint64{7, 7, 0, 7, 8} {
		select {
		case requests <- struct{}{}:
			asked <- n
		case <-ended:
			t.Fatal("the wait ended although nobody had written into the log")
		}
	}
	if !<-ended {
		t.Error("the wait says that its context ended")
	}
}

func TestWaitEndsWithItsPauseAndItsContext(t *testing.T) {
	newest := func(ctx context.Context) (queue.Info, error) { // a server that does not answer
		<-ctx.Done()
		return queue.Info{}, context.Cause(ctx)
	}
	if !AwaitNext(t.Context(), time.Millisecond, make(chan struct{}), newest) {
		t.Error("after the pause: false")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if AwaitNext(ctx, time.Hour, nil, newest) {
		t.Error("after the end of the context: true")
	}
}
