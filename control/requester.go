package control

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/source"
)

const (
	lookPeriod = 5 * time.Second        // between two looks whether an owner lives, while waiting
	retryPause = 250 * time.Millisecond // before a call is repeated
	inFlight   = 1024                   // chunks sent and not awaited yet; their bytes are bounded by the stream
)

// Requester sends requests to the owner of one table. Send and Do may not run at the same time.
type Requester struct {
	Table    string
	Clients  *clients.Clients
	ClaimTTL time.Duration
	By       string
	// Progress is called every second while Do waits, and with nil at its end; it may be nil.
	Progress func(*RequestProgress)
	// Why returns what the owner waits for, if that takes longer than usual; it may be nil.
	Why func(ctx context.Context) string
	// Each is called with every chunk that is done, in their order; it may be nil.
	Each func(c *request.Chunk, o *request.Outcome)
	// Away is called when the owner goes away, with the reason, and with nil when one is back; it
	// may be nil.
	Away func(why error)

	mu     sync.Mutex // covers what follows, and Clients' queue
	opened bool
	away   bool
	life   SilenceWatch
	store  *request.Store // nil while no connection is open
}

var errClosed = errors.New("the connection to the queue is closed")

// RequestTotal sums the outcomes of all chunks of a command.
type RequestTotal struct {
	Items int64
	request.Outcome
	IDs []string // of the chunks
}

// first opens the table's requests before the first of them. It returns an error of the environment
// unless an owner of the table lives.
func (r *Requester) first(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opened {
		return nil
	}
	r.opened = true
	if err := r.Clients.ReadClock(ctx, r.Table); err != nil {
		return source.Explain(err)
	}
	return r.open(ctx, r.Clients.Queue, r.ClaimTTL)
}

// open opens the requests in a queue if an owner lives. Silence of the owner must last for
// patience.
func (r *Requester) open(
	ctx context.Context, open func(context.Context) (*queue.Queue, error), patience time.Duration,
) error {
	q, err := open(ctx)
	if err != nil {
		return err
	}
	l, err := Open(ctx, q, r.Table)
	if err != nil {
		return err
	}
	signs := Signs{TTL: r.ClaimTTL, Closed: r.Clients.StoreWasClosed()}
	if !signs.Closed {
		if signs.Silent, err = r.life.Await(ctx, l, r.Clients.Now, r.ClaimTTL, patience); err != nil {
			return err
		}
	}
	if err := CheckOwner(r.Table, l.State, signs); err != nil {
		return WhyNotOwned(ctx, r.Clients.Config(), err)
	}
	if err := l.State.Fenced("a repair or a retry"); err != nil {
		return failure.With(failure.Unready, FenceHint, fmt.Errorf("table %s: %w", r.Table, err))
	}
	if r.store, err = l.Log.Requests(ctx); err != nil {
		return failure.With(failure.Unready, hintQueue, err)
	}
	return nil
}

// hintQueue is for an answer of the queue that is none.
const hintQueue = "see `replicator check`; then the same command again"

// Send requests the items and does not wait for the outcome. It blocks while too many requests
// wait.
func (r *Requester) Send(
	ctx context.Context, what string, items iter.Seq2[request.Item, error],
) (*RequestTotal, error) {
	sum := &RequestTotal{}
	err := r.cut(what, items, func(c *request.Chunk) error {
		sum.Items += int64(len(c.Items))
		sum.IDs = append(sum.IDs, c.ID)
		return r.send(ctx, c)
	})
	return sum, err
}

// Do requests the items and waits until all are done. If items yields an error, the items before it
// are done all the same.
func (r *Requester) Do(ctx context.Context, what string, items iter.Seq2[request.Item, error]) (*RequestTotal, error) {
	sum, p := &RequestTotal{}, &count{}
	defer r.show(ctx, p)()
	ctx, cancel := context.WithCancel(ctx)
	sent := make(chan *request.Chunk, inFlight)
	defer func() { // nothing of items is used after the return
		cancel()
		for range sent {
		}
	}()
	var unsent error
	go func() {
		defer close(sent)
		defer p.all.Store(true)
		unsent = r.cut(what, items, func(c *request.Chunk) error {
			if err := r.send(ctx, c); err != nil {
				return err
			}
			p.asked.Add(int64(len(c.Items)))
			select {
			case sent <- c:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	for c := range sent {
		out, err := r.await(ctx, c.ID)
		if err != nil {
			return sum, err
		}
		sum.Items += int64(len(c.Items))
		sum.IDs = append(sum.IDs, c.ID)
		if out.Failed != "" {
			return sum, failure.With(failure.Unready, out.Hint,
				fmt.Errorf("the owner of %s refuses the request: %s", r.Table, out.Failed))
		}
		sum.add(out)
		if r.Each != nil {
			r.Each(c, out)
		}
		p.done.Store(sum.Items)
	}
	return sum, unsent
}

// maxNotes bounds what is kept about single items.
const maxNotes = 1000

func (t *RequestTotal) add(o *request.Outcome) {
	t.Written, t.Equal, t.Left, t.Hot = t.Written+o.Written, t.Equal+o.Equal, t.Left+o.Left, t.Hot+o.Hot
	t.Applied, t.Refused, t.Waiting = t.Applied+o.Applied, t.Refused+o.Refused, t.Waiting+o.Waiting
	t.Deleted, t.Later = t.Deleted+o.Deleted, t.Later+o.Later
	if o.Until.After(t.Until) {
		t.Until = o.Until
	}
	if room := maxNotes - len(t.Notes); room > 0 {
		t.Notes = append(t.Notes, o.Notes[:min(room, len(o.Notes))]...)
	}
}

// cut calls f with the items in chunks. If items yields an error, the items before it are requested
// all the same.
func (r *Requester) cut(what string, items iter.Seq2[request.Item, error], f func(*request.Chunk) error) (bad error) {
	cutter := request.Cutter{What: what, By: r.By}
	for it, err := range items {
		if bad = err; err != nil {
			break
		}
		if full := cutter.Add(it, time.Now()); full != nil {
			if err := f(full); err != nil {
				return err
			}
		}
	}
	if rest := cutter.Rest(); rest != nil {
		if err := f(rest); err != nil {
			return err
		}
	}
	return bad
}

// send stores a chunk. The daemon may end and start meanwhile, and with it the server of the
// stream.
func (r *Requester) send(ctx context.Context, c *request.Chunk) error {
	if err := r.first(ctx); err != nil {
		return err
	}
	return r.repeat(ctx, func(ctx context.Context, s *request.Store) error { return s.Ask(ctx, c) })
}

// await returns the outcome of a chunk.
func (r *Requester) await(ctx context.Context, id string) (out *request.Outcome, err error) {
	err = r.repeat(ctx, func(ctx context.Context, s *request.Store) (err error) {
		out, err = s.Await(ctx, id)
		return err
	})
	if errors.Is(err, request.ErrNotFound) {
		return nil, failure.With(failure.None, "repeat the command; what is done twice changes nothing",
			fmt.Errorf("request %s of %s is gone: it is not known whether it was done", id, r.Table))
	}
	return out, err
}

// repeat makes a call again and again until it succeeds or shows that it never will, as long as an
// owner lives.
func (r *Requester) repeat(ctx context.Context, call func(context.Context, *request.Store) error) error {
	seen := time.Now() // when an owner was last seen
	for {
		store := r.current()
		once, cancel := context.WithTimeout(ctx, lookPeriod)
		err := errClosed
		if store != nil {
			err = call(once, store)
		}
		late := once.Err() != nil
		cancel()
		switch {
		case err == nil, errors.Is(err, request.ErrNotFound):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case late, store == nil, queue.Classify(err) == failure.Transient:
		case r.current() != store: // the other goroutine closed it
		default:
			return failure.With(failure.Unready, hintQueue, err)
		}
		if err := r.look(ctx, store); err == nil {
			seen = time.Now()
		} else if silent := time.Since(seen); silent > protocol.TakeoverPatience(r.ClaimTTL) && ctx.Err() == nil {
			return failure.With(failure.Unready,
				"start `replicator run`: it does what was asked for so far, whether or not a command waits for it",
				fmt.Errorf("no replicator has owned table %s for %s: %w", r.Table, silent.Round(time.Second), err))
		}
		if err := failure.Pause(ctx, retryPause); err != nil {
			return err
		}
	}
}

// current returns the table's requests in the newest connection.
func (r *Requester) current() *request.Store {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store
}

// look returns nil while an owner lives. If the connection is lost, it opens another one.
func (r *Requester) look(ctx context.Context, failed *request.Store) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store != failed {
		return nil // the other goroutine has looked
	}
	once, cancel := context.WithTimeout(ctx, 2*lookPeriod)
	defer cancel()
	err := r.open(once, func(ctx context.Context) (*queue.Queue, error) {
		ctx, cancel := context.WithTimeout(ctx, lookPeriod) // the rest is for reading the log
		defer cancel()
		return r.Clients.RunningQueue(ctx)
	}, 0)
	if err != nil {
		_ = r.Clients.CloseQueue() // the daemon went away: the next look waits for it
		r.store = nil
	}
	if away := err != nil; away != r.away && ctx.Err() == nil && r.Away != nil {
		r.away = away
		r.Away(err)
	}
	return err
}
