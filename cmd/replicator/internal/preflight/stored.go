package preflight

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/wire"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// codeBackfill warns about a table that is not empty. It is withdrawn for a table that an earlier run has started.
const codeBackfill = "backfill"

// stored compares the tables with what earlier runs left: the pipeline's rows in Bigtable, the owners of the targets,
// and the logs. It refuses what run refuses, with the same messages.
func (c *check) stored(ctx context.Context) {
	if c.sink == nil {
		return
	}
	for _, t := range c.catalog.Tables {
		if !t.Described || t.Program == nil {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, wire.AskTimeout)
		err := c.compareStored(asking, t)
		cancel()
		refused := (*pipeline.RefusedError)(nil)
		switch {
		case err == nil || bigtable.Classify(err) == failure.Missing: // the comparison of the schema reports it
		case errors.As(err, &refused):
			c.add(errorf("stored_state", t.Path, refused.Hint, "%s", refused.What))
		default:
			c.failed("stored_state", t.Path, fmt.Errorf("compare with what is stored: %w", err))
		}
	}
}

// compareStored returns a *pipeline.RefusedError where run would refuse the table.
func (c *check) compareStored(ctx context.Context, t *catalog.Table) error {
	owner, err := c.sink.TargetOwner(ctx, t.Target)
	if err != nil {
		return err
	}
	if refused := pipeline.CheckTarget(c.sink, c.cfg.Pipeline, t.Target, owner); refused != nil {
		c.add(errorf("foreign_target", t.Path+".target", refused.Hint, "%s", refused.What))
	}
	row, err := c.sink.LoadState(ctx, c.cfg.Pipeline, t.Source)
	if err != nil && !errors.Is(err, bigtable.ErrNoState) {
		return err
	}
	if row != nil {
		c.withdraw(codeBackfill, t.Path+".source")
	}
	log, err := c.log(ctx, t)
	if err != nil {
		return err
	}
	want, state := c.identity(t), checkpoint.NewState()
	switch {
	case log != nil:
		want.LogCreated = log.Created().UTC()
		if state, err = log.Fold(ctx); err != nil {
			return err
		}
	case row != nil:
		want.LogCreated = row.Identity.LogCreated // CheckLog reports the lost log
	}
	if row != nil {
		if refused := pipeline.CheckIdentity(row, want); refused != nil {
			return refused
		}
	}
	if c.queueFails {
		return nil // the queue's own problem is reported already
	}
	start := pipeline.Start{Latest: c.cfg.Source.Start.Latest, At: c.cfg.Source.Start.At}
	if refused := pipeline.CheckLog(row, state, want, start); refused != nil {
		return refused
	}
	return nil
}

// identity returns what the table's row in Bigtable must hold, without the creation time of the log.
func (c *check) identity(t *catalog.Table) bigtable.Identity {
	hash := t.Program.Hash()
	return bigtable.Identity{
		Pipeline: c.cfg.Pipeline, Table: t.Source, TableID: t.Info.ID, StreamARN: t.Info.StreamARN,
		MappingHash: hex.EncodeToString(hash[:]), Target: c.sink.TargetName(t.Target),
	}
}

// log opens the log of a table; nil if it has none.
func (c *check) log(ctx context.Context, t *catalog.Table) (*queue.Log, error) {
	if c.queue == nil {
		return nil, nil
	}
	log, err := c.queue.Log(ctx, t.Source)
	if errors.Is(err, queue.ErrNoLog) {
		return nil, nil
	}
	return log, err
}

// withdraw removes a warning that does not hold for a table that an earlier run has started.
func (c *check) withdraw(code, path string) {
	found := func(p problem.Problem) bool { return p.Code == code && p.Path == path }
	c.Environment = slices.DeleteFunc(c.Environment, found)
}
