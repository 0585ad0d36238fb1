package pipeline

import (
	"context"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// awaitClaim claims the log. Meanwhile the table is a stand-by: it shows which process carries it,
// and may request it.
func (t *table) awaitClaim(ctx context.Context) (*queue.Writer, error) {
	v, o := t.view, t.claimOptions()
	o.Group, o.Grown = t.balancer.Group(), v.noteRival
	if t.balancer != nil {
		o.Turn = func() time.Duration { return t.balancer.ClaimDelay(t.Source) }
	}
	v.setPhase(phaseWaiting)
	o.Group.Announce() // that it can be asked to take the log
	defer v.publish(func(s *snapshot) { s.phase, s.rival = phaseIdle, nil })
	return t.currentLog().Claim(ctx, o)
}

// noteRival notes that another process carries the table: its log was found to grow, or its owner
// announced itself. What this process observed itself, or halted for, is out of date.
func (v *tableView) noteRival(owner string, epoch uint64) {
	v.publish(func(s *snapshot) {
		if s.rival == nil {
			s.seen, s.halt, s.denied = nil, nil, 0
		}
		s.unseen = time.Now()
		s.rival = &rival{owner: owner, epoch: epoch, moved: s.unseen}
	})
}

func (t *table) claimOptions() queue.ClaimOptions {
	o := queue.ClaimOptions{
		Owner: t.o.Owner, TTL: t.o.Periods.ClaimTTL, Alone: t.queue.Embedded(), Format: t.format.Target(),
		Identity: &checkpoint.Identity{
			Pipeline: t.o.Name, Table: t.Source, TableID: t.info.ID, Mapping: t.row.MappingID(),
		},
	}
	if row := t.row.Known(); row != nil {
		o.Life = row.Life // without the row the log's own
	}
	return o
}
