package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// Pipeline runs tables until its context ends.
type Pipeline struct {
	o      Options
	queue  *queue.Queue
	source *source.Source
	shared *apply.Shared
	tables []*table
}

// New wires a pipeline.
func New(o Options, src *source.Source, q *queue.Queue, sink *bigtable.Client,
	log *zap.Logger, reg prometheus.Registerer) *Pipeline {
	p := &Pipeline{o: o.withDefaults(), queue: q, source: src}
	limits := apply.Limits{Memory: p.o.Memory, Lanes: p.o.Lanes, Tables: len(o.Tables)}
	p.shared = apply.NewShared(limits, sink, func() change.Millis { return serviceTime(src) })
	registerMetrics(reg, p)
	metrics, refusals, families := apply.NewMetrics(reg), newRefusals(o.Tables), newFamilies(o.Tables, sink)
	copies, copyMemory := resync.NewMetrics(reg), resync.NewMemory(p.o.CopyMemory)
	archives := archiving.NewMetrics(reg)
	for _, t := range o.Tables {
		e := &env{
			Table: t, o: &p.o, source: src, queue: q, bigtable: sink, families: families, copyMemory: copyMemory,
			archives: archives,
			log:      log.With(zap.String("table", t.Source), zap.String("target", t.Target)),
		}
		p.tables = append(p.tables, newTable(e, p.shared, metrics.Table(t.Source, e.log), copies.Table(t.Source), refusals))
	}
	return p
}

// Run works until ctx ends, then drains: it stops reading, applies what the logs hold, writes the marks and releases
// the logs, within Periods.Shutdown. It returns nil after that. A *RefusedError says that no table can run, because
// each one's state is refused; everything else that goes wrong halts one table, is retried, and leaves the others
// running.
func (p *Pipeline) Run(ctx context.Context) error {
	defer p.keepQueue(ctx)()
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range p.tables {
		g.Go(func() error { return t.run(ctx) })
	}
	return g.Wait()
}

// keepQueue looks after the queue's store until the returned function is called. That is longer than ctx: a drain
// stores marks, too.
func (p *Pipeline) keepQueue(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { return p.queue.Run(ctx) })
	return func() {
		cancel()
		_ = g.Wait() // nil: Run only ends with its context
	}
}

// failures returns which services fail for longer than a retry takes, and how much waits for them.
func (p *Pipeline) failures(now time.Time) (failing []string) {
	for _, f := range p.o.Services.Failures(now) {
		if now.Sub(f.Since) >= status.FailureGrace {
			failing = append(failing, f.Sentence(now)+p.backlog(f.Service))
		}
	}
	return failing
}

// backlog returns how much waits for a failing service, for a reason.
func (p *Pipeline) backlog(service string) string {
	var n uint64
	for _, t := range p.tables {
		if v := t.view.seen.Load(); v != nil && v.Own() {
			n += v.Waiting()
		}
	}
	if service != status.Bigtable || n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s of the logs wait to be applied", status.Entries(n))
}
