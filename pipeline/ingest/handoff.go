package ingest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// handoff is what passes between the write loop and the goroutines beside it: the readers, the
// lister and the sinks.
type handoff struct {
	arrivals chan arrival     // of the readers
	requests chan request     // of the lister and the sinks
	shards   chan []shardTask // for the readers; capacity 1
	readAll  chan struct{}    // for the readers: every shard is to be read at once; capacity 1
	drained  chan struct{}    // closed when no shard is read any more, because a drain began
	retry    time.Duration    // between two tries to store an entry in a full log
	ended    atomic.Int32     // how many of the readers and the write loop use arrivals no more
}

func newHandoff(retry time.Duration) *handoff {
	return &handoff{
		arrivals: make(chan arrival, 64),
		requests: make(chan request),
		shards:   make(chan []shardTask, 1),
		readAll:  make(chan struct{}, 1),
		drained:  make(chan struct{}),
		retry:    retry,
	}
}

// request is a request to the write loop to append an entry. It may be stale when the loop takes
// it.
type request struct {
	body any // *checkpoint.Graph, *checkpoint.Start, *checkpoint.Gap or *checkpoint.Control
	done chan error
}

// arrival is what a reader returned, in the order of its shard: a page, or the gap that ended its
// reading.
type arrival struct {
	page *source.Page
	gap  request
	// childless: the page ends its shard, and no child of it was listed yet.
	childless bool
}

// release gives back the memory of a page that will not be stored.
func (a *arrival) release() {
	if a.page != nil {
		a.page.Release()
	}
}

// leave is called when the readers have ended, and when the write loop takes no more arrivals. The
// last of the two gives back the memory of the pages that wait, which are read again: a page that
// was not released would take its table's memory for as long as the process lives.
//
// Rules 2 and 10: beside a write loop that still takes arrivals none may be dropped. It would store
// the page behind the one that was dropped, which does not follow what the log holds, or take an
// empty page for a proof that everything before it was stored.
func (h *handoff) leave() {
	if h.ended.Add(1) < 2 {
		return
	}
	for {
		select {
		case a := <-h.arrivals:
			a.release()
		default:
			return
		}
	}
}

// shardTask is a shard and where its reading continues.
type shardTask struct {
	feed       change.Feed
	position   change.Position
	clock      change.Version
	since      change.Millis // everything before it was read: what is trimmed later is a gap, even from the trim horizon
	life       change.Life
	read       change.Millis // everything before it was read of the shard, or of its parents; 0: nothing was
	closed     bool
	unreadable bool // the shard may not be read any more
}

// request has the write loop append an entry, and blocks until it is durable. While the log is full
// it sends the request again.
func (h *handoff) request(ctx context.Context, body any) error {
	return h.requestVia(ctx, body, func(r request) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case h.requests <- r:
			return nil
		}
	})
}

// requestVia is request with a function that hands the request to the write loop.
func (h *handoff) requestVia(ctx context.Context, body any, hand func(request) error) error {
	for {
		r := request{body: body, done: make(chan error, 1)}
		if err := hand(r); err != nil {
			return err
		}
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err = <-r.done:
		}
		if !errors.Is(err, queue.ErrFull) {
			return err
		}
		if err := failure.Pause(ctx, h.retry); err != nil {
			return err
		}
	}
}

// offerShards gives the readers the shards that became readable, and takes from them those that are
// not any more.
func (h *handoff) offerShards(s *checkpoint.State, changed []*checkpoint.Shard) {
	if len(changed) == 0 {
		return
	}
	tasks := make([]shardTask, 0, len(changed))
	for _, sh := range changed {
		tasks = append(tasks, shardTask{
			feed: change.Feed{Stream: sh.Stream, Shard: sh.ID}, position: sh.Pos, clock: sh.Clock,
			since: s.CompleteUntil(sh), life: s.LifeOf(sh.Stream), closed: sh.Phase.Closed(), read: sh.Watermark,
			unreadable: !s.Readable(sh),
		})
	}
	select { // what the readers have not taken yet goes first
	case older := <-h.shards:
		tasks = append(older, tasks...)
	default:
	}
	h.shards <- tasks
}

// signal fills a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
