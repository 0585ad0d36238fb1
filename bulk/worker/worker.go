package worker

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

// inProcess is how many items are in flight in a process, of all its files. Their JSON is in
// memory, 400 KB at most each and 1 KB as a rule. The client of Bigtable finds how many calls are
// best, and that is more only where an answer takes longer than the processors need for a thousand
// items: 40 ms a core.
const inProcess = 1024

// Worker is what the files of a process share.
type Worker struct {
	order   *delegation.Order
	program *transform.Program
	schema  change.KeySchema
	client  *bigtable.Client
	export  *export.Export
	lease   *lease
	room    *semaphore.Weighted

	reading errgroup.Group // the readings of the order
	stop    context.CancelFunc
}

var shared struct {
	sync.Mutex
	workers map[Place]*Worker
}

// Shared returns the worker of this process for an order, and opens it at the first call. Engines
// make an instance of a function for each bundle, and one client serves them all. A worker lives as
// long as its process.
func Shared(p Place) (*Worker, error) {
	shared.Lock()
	defer shared.Unlock()
	if w := shared.workers[p]; w != nil {
		return w, nil
	}
	w, err := Open(context.Background(), p) // a worker outlives the context of a bundle
	if err != nil {
		return nil, err
	}
	if shared.workers == nil {
		shared.workers = map[Place]*Worker{}
	}
	shared.workers[p] = w
	return w, nil
}

// Open reads the order, compiles its mappings and opens its export. ErrClosed means that the order
// is closed, or is another one.
func Open(ctx context.Context, p Place) (*Worker, error) {
	w := &Worker{room: semaphore.NewWeighted(inProcess)}
	reader, err := p.Client(ctx, 0, nil)
	if err != nil {
		return nil, err
	}
	var seen *delegation.Seen
	err = ask(ctx, func() (err error) {
		seen, err = reader.LoadOrder(ctx, p.Pipeline, p.Table)
		return err
	})
	closed := reader.Close()
	switch {
	case unreadable(err):
		return nil, &errOther{err.Error()}
	case err != nil:
		return nil, err
	case closed != nil:
		return nil, closed
	case !seen.Order.Open() || seen.Order.ID != p.Order || seen.Order.Life != seen.Life || seen.Held:
		return nil, ErrClosed
	case seen.Order.Profile != p.Profile:
		return nil, &errOther{fmt.Sprintf("the order names app profile %q, the job %q", seen.Order.Profile, p.Profile)}
	}
	w.order = seen.Order
	if w.schema, err = schemaOf(w.order); err != nil {
		return nil, err
	}
	var programs []*transform.Program
	if w.program, programs, err = Compile(w.order); err != nil {
		return nil, err
	}
	if w.export, err = p.OpenExport(ctx, w.order); err != nil {
		return nil, err
	}
	w.lease = newLease(w.order, func(ctx context.Context) (*delegation.Seen, error) {
		return w.client.LoadOrder(ctx, p.Pipeline, p.Table)
	})
	if w.client, err = p.Client(ctx, w.order.Tombstones, w.lease.date); err != nil {
		return nil, err
	}
	w.client.Declare(w.order.Target, families(programs))
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	w.reading.Go(func() error { w.lease.run(reading); return nil })
	return w, nil
}

// Close ends the readings of the order and the connections. No file is being copied.
func (w *Worker) Close() error {
	w.stop()
	_ = w.reading.Wait()
	return w.client.Close()
}

// attempts is how often a reading of Bigtable is made that makes one attempt itself.
const attempts = 6

// ask makes a reading, again where it failed and may succeed.
func ask(ctx context.Context, read func() error) error {
	for n := 1; ; n++ {
		err := read()
		if err == nil || unreadable(err) {
			return err
		}
		if n == attempts || bigtable.Classify(err) != failure.Transient {
			return bigtable.Explain(err)
		}
		if paused := failure.Pause(ctx, failure.Backoff(n)); paused != nil {
			return paused
		}
	}
}

// families returns the data families of a target.
func families(all []*transform.Program) (names []string) {
	have := map[string]bool{}
	for _, p := range all {
		for _, f := range p.Families() {
			if !have[f.Name] {
				have[f.Name] = true
				names = append(names, f.Name)
			}
		}
	}
	return names
}
