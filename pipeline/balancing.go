package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/balance"
	"github.com/tailrace-cdc/replicator/pipeline/rollout"
	"github.com/tailrace-cdc/replicator/queue/presence"
)

// newBalancer returns what divides the tables with other processes; nil where there are none.
func (p *Pipeline) newBalancer() *balance.Balancer {
	return balance.New(balance.Options{
		Me: p.o.Owner, Build: p.o.Build, Reads: checkpoint.Format, Tables: p.shareable, Answer: p.answers,
		Prove: p.prove, HandOver: p.handOver, Logger: p.log,
	}, p.queue.Group)
}

// shareable returns how the tables are, for the others.
func (p *Pipeline) shareable() (all []balance.Table) {
	for _, t := range p.all() {
		now := t.view.latest()
		v := balance.Table{Name: t.Source, Waiting: now.phase == phaseWaiting}
		if now.writer != nil {
			v.Owned, v.Epoch, v.Changes = true, now.writer.Epoch(), now.changes
			v.Seq, v.Sent = now.writer.Head()
		}
		all = append(all, v)
	}
	return all
}

// heard returns the processes of the pipeline that announce themselves now, this one among them.
func (p *Pipeline) heard(context.Context) ([]rollout.Member, error) {
	all := []rollout.Member{{Owner: p.o.Owner, Build: p.o.Build, Reads: checkpoint.Format}}
	others, _ := p.balancer.Group().Members(time.Now())
	for _, m := range others {
		all = append(all, rollout.Member{Owner: m.Member, Build: m.Build, Reads: m.Reads})
	}
	return all, nil
}

// answers returns how the services answer this process.
func (p *Pipeline) answers() balance.Services {
	all, now := balance.Services{}, time.Now()
	for name, a := range p.o.Services.Answers(now) {
		all[name] = presence.Service{Success: presence.AgeOf(a.Last, now), Failing: a.Failing.Milliseconds()}
	}
	return all
}

// prove proves that this process can work with a table while it waits for the log: both services
// answer for it.
func (p *Pipeline) prove(ctx context.Context, source string) error {
	for _, t := range p.all() {
		if t.Source != source || t.view.latest().phase != phaseWaiting {
			continue
		}
		_, err := t.source.Table(ctx, source)
		if err == nil {
			_, err = t.rows().LoadState(ctx, p.o.Name, source)
		}
		return err
	}
	return fmt.Errorf("table %s does not wait for its log", source)
}

// handOver begins to hand the log of a table over to another process. The other tables go on.
func (p *Pipeline) handOver(source, to string) {
	for _, t := range p.all() {
		if owned := t.yielding.Load(); t.Source == source && owned != nil {
			owned.Leave(to)
		}
	}
}

// handedOverAtOnce is how many tables a process that ends hands over side by side; the others work
// on meanwhile.
const handedOverAtOnce = 8

// end ends a table because the process ends: at once, or in its turn where another process gets its
// log.
func (p *Pipeline) end(t *table, leave func(to string)) {
	p.leaving.Do(func() { p.successors = p.balancer.Leave() })
	to := p.successors[t.Source]
	if to == "" {
		leave("")
		return
	}
	late := time.After(p.o.Periods.Shutdown / 2)
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-late:
	case <-t.ended:
		return
	}
	leave(to)
	<-t.ended
}

// formatOptions returns where the format of the pipeline is kept: in Bigtable if any table has a
// target.
func (p *Pipeline) formatOptions() rollout.Options {
	o := rollout.Options{
		Pipeline: p.o.Name, Owner: p.o.Owner, Build: p.o.Build, Queue: p.queue, Members: p.heard, Logger: p.log,
		Every: min(2*p.o.Periods.ClaimTTL, 30*time.Second),
	}
	if p.bigtable != nil {
		o.Store = rollout.InBigtable(p.bigtable)
	} else if p.o.Archive != nil {
		o.Store = rollout.InBucket(p.o.Archive.Objects, p.o.Archive.Probe)
	}
	return o
}
