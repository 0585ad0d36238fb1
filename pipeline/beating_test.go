package pipeline_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/sandbox/fault"
)

// folded is the state of a table's log, as any process reads it; empty while there is no log.
func (r *run) folded(name string) *checkpoint.State {
	r.t.Helper()
	l, err := r.queue.Log(r.t.Context(), name)
	if err != nil {
		return checkpoint.NewState()
	}
	s, err := l.Fold(r.t.Context())
	if err != nil {
		r.t.Logf("fold: %v", err)
		return checkpoint.NewState()
	}
	return s
}

// Three replicas start at once, and the first listing takes longer than the claim's time.
func TestSlowFirstListingKeepsItsClaim(t *testing.T) {
	w := newWorld(t)
	url := externalNATS(t)
	w.qopts = func(o *queue.Options) { o.Dir, o.URL = "", url }
	n := 0
	w.opts = func(o *pipeline.Options) { n++; o.Owner = fmt.Sprint("replica-", n) }
	w.createTable("Orders")
	w.put("Orders", "p", "s", `"v":{"N":"1"}`)
	slow := fault.Rule{Effect: fault.Latency, Operation: "DescribeStream", Delay: 3 * time.Second}
	if err := w.faults.Inject(slow); err != nil {
		t.Fatal(err)
	}
	r := w.start("Orders")
	w.start("Orders")
	w.start("Orders")
	r.until("a replica has started the table", func() bool { return r.folded("Orders").LiveStream() != nil })
}

// pausedWalk holds every walk over dead letters until it is released, and reports when one waits.
type pausedWalk struct {
	mu   sync.Mutex
	open chan struct{}
	held chan struct{}
}

func newPausedWalk() *pausedWalk {
	g := &pausedWalk{held: make(chan struct{}, 1)}
	g.hold()
	return g
}

func (g *pausedWalk) hold() {
	g.mu.Lock()
	g.open = make(chan struct{})
	g.mu.Unlock()
}

func (g *pausedWalk) release() {
	g.mu.Lock()
	close(g.open)
	g.mu.Unlock()
}

func (g *pausedWalk) wait(ctx context.Context) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return
	default:
	}
	select {
	case g.held <- struct{}{}:
	default:
	}
	select {
	case <-open:
	case <-ctx.Done():
	}
}

// isHeld reports, once, that a walk waits.
func (g *pausedWalk) isHeld() bool {
	select {
	case <-g.held:
		return true
	default:
		return false
	}
}

func TestWalkOverLettersHoldsNoBeat(t *testing.T) {
	long(t, "4 s")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.open("Orders")
	g := newPausedWalk()
	r.p.BeforeLetters(g.wait)
	r.begin()
	r.until("a walk over letters waits", g.isHeld)
	first := r.folded("Orders").Seq
	r.until("a starting table beats while its letters are walked over", func() bool {
		return r.folded("Orders").Seq > first+5
	})
	g.release()
	r.settle()

	w.front.Faults.RefuseRow([]byte("bad"), codes.InvalidArgument, 2)
	w.put("Orders", "bad", "x", `"v":{"N":"1"}`)
	r.until("it is a letter", func() bool { return r.table("Orders").DeadLetters == 1 })
	g.hold()
	letters := r.letters("Orders")
	for l, err := range letters.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if err := letters.Drop(t.Context(), l.ID); err != nil { // the count changed: the table walks again
			t.Fatal(err)
		}
	}
	r.until("another walk waits", g.isHeld)
	w.put("Orders", "good", "x", `"v":{"N":"1"}`)
	r.settle()
	g.release()
	r.until("the letter is forgotten", func() bool { return r.table("Orders").DeadLetters == 0 })
}

// letters opens the dead letters of a table as the commands do.
func (r *run) letters(name string) *deadletter.Store {
	r.t.Helper()
	l, err := r.queue.Log(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	letters, err := l.DeadLetters(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return letters
}
