package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
)

// join makes a table one of the pipeline's.
func (p *Pipeline) join(o Table) *table {
	e := &env{
		Table: o, o: &p.o, source: p.source, queue: p.queue, bigtable: p.bigtable, families: p.families,
		settings: p.settings,
		format:   p.format, copyMemory: p.copyMemory, archives: p.archives, balancer: p.balancer,
		log: p.log.With(zap.String("table", o.Source), zap.String("target", o.Target)),
	}
	p.refusals.Expect(o.Source)
	if o.Target != "" {
		p.families.Expect(o.Target, o.Source)
	}
	t := newTable(e, p.shared, p.metrics.Table(o.Source, e.log), p.copies.Table(o.Source), p.refusals)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tables = append(slices.Clip(p.tables), t)
	return t
}

// Add lets a running pipeline replicate one more table, which must not have the source or the
// target of another one. It returns once the table has begun, or ctx has ended.
func (p *Pipeline) Add(ctx context.Context, o Table) error {
	for _, t := range p.all() {
		if t.Source == o.Source || t.Target == o.Target && o.Target != "" {
			return fmt.Errorf("add table %s: %s is replicated to %s", o.Source, t.Source, t.Target)
		}
	}
	select {
	case p.added <- o:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin runs a table until ctx ends or it is removed.
func (p *Pipeline) begin(ctx context.Context, g *errgroup.Group, t *table) {
	running, leaving := life.WithLeaving(context.WithoutCancel(ctx), nil)
	t.leaving.Store(leaving)
	g.Go(func() error {
		defer leaving.Leave("")
		defer close(t.ended)
		defer context.AfterFunc(ctx, func() { p.end(t, leaving.Leave) })()
		return t.run(running)
	})
}

// beginAdded begins the tables that are added while the pipeline runs.
func (p *Pipeline) beginAdded(ctx context.Context, g *errgroup.Group) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case o := <-p.added:
			p.begin(ctx, g, p.join(o))
		}
	}
}

// Remove drains a table of a running pipeline, releases its log, and removes the table: what is
// stored of it stays. It returns when the table has ended, or when ctx has.
func (p *Pipeline) Remove(ctx context.Context, source string) {
	for _, t := range p.all() {
		leaving := t.leaving.Load()
		if t.Source != source || leaving == nil {
			continue
		}
		leaving.Leave("")
		select {
		case <-t.ended:
		case <-ctx.Done():
			return
		}
		p.refusals.Forget(source)
		p.mu.Lock()
		p.tables = slices.DeleteFunc(slices.Clone(p.tables), func(x *table) bool { return x == t })
		p.mu.Unlock()
	}
}

// Note sets what is to be said of sources from outside: each is a reason why its table, or one that
// cannot be replicated at all, is not ready.
func (p *Pipeline) Note(notes map[string]status.Reason) {
	notes = maps.Clone(notes)
	for _, t := range p.all() {
		t.view.publish(func(s *snapshot) {
			s.note = nil
			if note, ok := notes[t.Source]; ok {
				s.note = &note
			}
		})
		delete(notes, t.Source)
	}
	others := []status.About{}
	for _, source := range slices.Sorted(maps.Keys(notes)) {
		others = append(others, status.About{Source: source, Text: notes[source].Text})
	}
	p.others.Store(append([]string{}, status.Grouped(others)...))
}
