package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/balance"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/rollout"
	"github.com/tailrace-cdc/replicator/pipeline/settings"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// Pipeline runs tables until its context ends.
type Pipeline struct {
	o          Options
	queue      *queue.Queue
	source     *source.Source
	bigtable   *bigtable.Client
	shared     *apply.Shared
	families   *targetFamilies
	settings   *settings.Watch
	format     *rollout.Format
	refusals   *outcome.Refusals
	copyMemory *resync.Memory
	metrics    *apply.Metrics
	copies     *resync.Metrics
	archives   *archiving.Metrics
	log        *zap.Logger

	mu     sync.Mutex // covers tables
	tables []*table   // replaced, and never changed in place
	added  chan Table // by Add

	others atomic.Value // []string: notes about no table of the pipeline

	balancer   *balance.Balancer // nil: there are no other processes
	leaving    sync.Once         // covers successors, which are decided when the process ends
	successors map[string]string
	turns      chan struct{} // a place for each table that is handed over at the end

	tracker    status.Tracker
	rehearsals status.Rehearsals

	// cpuShort reports whether goroutines of this process wait for a processor. Tests replace it.
	cpuShort func() bool
}

// New wires a pipeline.
func New(o Options, src *source.Source, q *queue.Queue, sink *bigtable.Client,
	log *zap.Logger, reg prometheus.Registerer) *Pipeline {
	p := &Pipeline{
		o: o.withDefaults(), queue: q, source: src, bigtable: sink, log: log, added: make(chan Table),
		families: newTargetFamilies(sink), refusals: outcome.NewRefusals(),
	}
	if p.cpuShort = func() bool { return false }; sink != nil {
		p.cpuShort = sink.CPUShort
	}
	p.settings = settings.New(p.settingsOptions())
	p.format = rollout.New(p.formatOptions())
	p.turns = make(chan struct{}, handedOverAtOnce)
	p.balancer = p.newBalancer()
	limits := apply.Limits{Memory: p.o.Memory, Lanes: p.o.Lanes, Calls: p.o.Calls}
	if o.Grows {
		p.refusals.NoteMatch("")
	}
	p.shared = apply.NewShared(limits, sink, func() change.Millis { return serviceTime(src) })
	registerMetrics(reg, p)
	p.metrics, p.copies, p.archives = apply.NewMetrics(reg), resync.NewMetrics(reg), archiving.NewMetrics(reg)
	p.copyMemory = resync.NewMemory(p.o.CopyMemory)
	for _, t := range o.Tables {
		p.join(t)
	}
	return p
}

// Run works until ctx ends, then drains: it stops reading, applies what the logs hold, writes the
// marks and releases the logs, within Periods.Shutdown. It returns nil after that. A *RefusedError
// means that no table can run, because the state of each is refused. Everything else that goes
// wrong halts one table, is retried, and leaves the others running.
func (p *Pipeline) Run(ctx context.Context) error {
	defer p.keepQueue(ctx)()
	if err := p.format.Begin(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() {
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			p.log.Error("replicator is ended by an error", zap.Error(err))
		}
	})()
	g.Go(func() error { return p.format.Run(ctx) })
	p.followRehearsals(ctx)
	for _, t := range p.all() {
		p.begin(ctx, g, t)
	}
	g.Go(func() error { return p.beginAdded(ctx, g) })
	g.Go(func() error { return p.keepHistory(ctx) })
	g.Go(func() error { return p.keepLooks(ctx) })
	g.Go(func() error { return p.endWithoutQueue(ctx) })
	return g.Wait()
}

// endWithoutQueue returns a *RefusedError when the connection to NATS is closed for good: no table
// can go on, and another process begins with a new connection.
func (p *Pipeline) endWithoutQueue(ctx context.Context) error {
	if err := p.queue.GivenUp(ctx); err != nil {
		return &RefusedError{What: err.Error(), Hint: "start the process again: nothing is lost"}
	}
	return nil
}

// keepHistory samples the tables until ctx ends, and reports once a minute how each is.
func (p *Pipeline) keepHistory(ctx context.Context) error {
	tick := time.NewTicker(latency.Every)
	defer tick.Stop()
	p.restoreHours(time.Now())
	defer p.keepHours()
	for taken := 1; ; taken++ {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			for _, t := range p.all() {
				t.view.remember(now)
				if taken%reportEvery == 0 {
					st := t.view.status(now)
					t.view.report(&st)
				}
			}
			p.Status() // notes since when the verdict is what it is
			if taken%saveHours == 0 {
				p.keepHours()
			}
		}
	}
}

// keepQueue looks after the queue's store, and speaks with the other processes, until the returned
// function is called. That is longer than ctx: a drain stores marks, too.
func (p *Pipeline) keepQueue(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { return p.queue.Run(ctx) })
	g.Go(func() error { return p.balancer.Run(ctx) })
	return func() {
		cancel()
		_ = g.Wait() // nil: Run only ends with its context
	}
}
