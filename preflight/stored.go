package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// codeBackfill warns that the items of a table are not copied. It is withdrawn for a table that an
// earlier run has started: for that one it is decided.
const codeBackfill = "backfill"

// codeScan refuses a table that is to be copied if its items cannot be read.
const codeScan = "scan"

// stored compares the tables with what earlier runs left: the pipeline's rows in Bigtable, the
// owners of the targets, and the logs. It refuses what run refuses, with the same messages.
func (c *check) stored(ctx context.Context) {
	denied := false
	for _, t := range c.catalog.Tables {
		if !t.Described || t.Program == nil || c.sink == nil && !t.ArchivedOnly() {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, clients.AskTimeout)
		err := c.compareStored(asking, t)
		cancel()
		refused := (*pipeline.RefusedError)(nil)
		switch {
		case err == nil:
		case bigtable.Classify(err) == failure.Missing: // the comparison of the schema reports it
			c.firstStart(ctx, t)
		case errors.As(err, &refused):
			c.add(errorf("stored_state", t.Path, refused.Hint, "%s", refused.What))
			if !t.ArchivedOnly() {
				c.mappingEdit(ctx, t)
			}
		case bigtable.Classify(err) == failure.Denied: // the account lacks a permission, whichever table is read
			if !denied {
				c.failed("stored_state", "bigtable", bigtable.Explain(fmt.Errorf("compare with what is stored: %w", err)))
			}
			denied = true
		default:
			c.failed("stored_state", t.Path, fmt.Errorf("compare with what is stored: %w", err))
		}
	}
}

// compareStored returns a *pipeline.RefusedError where run would refuse the table.
func (c *check) compareStored(ctx context.Context, t *catalog.Table) error {
	row, err := c.storedRow(ctx, t)
	if err != nil {
		return err
	}
	log, err := c.log(ctx, t)
	if err != nil {
		return err
	}
	want, state := t.Identity(c.cfg.Pipeline, c.sink), checkpoint.NewState()
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
		if refused := staterow.CheckIdentity(row, want); refused != nil {
			return refused
		}
	}
	if c.queueFails {
		return nil // the queue's own problem is reported already
	}
	if refused := staterow.CheckLog(row, state, want, clients.Start(c.cfg)); refused != nil {
		return refused
	}
	return nil
}

// storedRow returns the table's row, and nil if it was never started: then it looks whether it may
// be.
func (c *check) storedRow(ctx context.Context, t *catalog.Table) (*bigtable.State, error) {
	if t.ArchivedOnly() && !c.bucket {
		return nil, nil // there is none yet, or that it cannot be read is reported already
	}
	rows, err := c.clients.Rows(ctx, &t.Table)
	if err != nil {
		return nil, err
	}
	if !t.ArchivedOnly() {
		if err := c.targetOwner(ctx, t); err != nil {
			return nil, err
		}
	}
	row, err := rows.LoadState(ctx, c.cfg.Pipeline, t.Source)
	switch {
	case err != nil && !errors.Is(err, bigtable.ErrNoState):
		return nil, err
	case t.ArchivedOnly():
		return row, nil
	case row == nil:
		c.firstStart(ctx, t)
		return nil, staterow.CheckFirst(ctx, c.sink, t.Source, t.Target)
	}
	c.withdraw(codeBackfill, t.Path+".source")
	if t.Backfill.From == "" {
		c.withdraw(codeScan, t.Path+".source") // it may be older than backfills, and then it copies nothing
	}
	c.withdrawCopy(t.Source)
	c.cluster(t, row)
	return row, nil
}

// targetOwner reports a target that belongs to another pipeline.
func (c *check) targetOwner(ctx context.Context, t *catalog.Table) error {
	owner, err := c.sink.TargetOwner(ctx, t.Target)
	if err != nil {
		return err
	}
	if refused := staterow.CheckTarget(c.sink, c.cfg.Pipeline, t.Target, owner); refused != nil {
		hint := refused.Hint
		if !strings.Contains(hint, "--adopt") {
			hint = "stop the other pipeline for good, then `replicator run --adopt`; " + hint
		}
		c.add(errorf("foreign_target", t.Path+".target", hint, "%s", refused.What))
	}
	return nil
}

// mappingEdit reports the result of `mapping diff` for a table with a changed mapping: whether the
// change can be accepted.
func (c *check) mappingEdit(ctx context.Context, t *catalog.Table) {
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	edits, err := c.catalog.MappingEdits(ctx, c.sink, nil)
	if err != nil {
		return // the refusal stands; `mapping diff` gives the reason
	}
	for _, e := range edits {
		if e.Source != t.Source || e.From == e.To {
			continue
		}
		what, hint := e.Verdict()
		c.add(warnf("mapping_changed", t.Path+".mapping", hint, "%s", what))
	}
}

// cluster compares the cluster that the app profile writes to with the one that the rows were
// written to.
func (c *check) cluster(t *catalog.Table, row *bigtable.State) {
	if row.Cluster == "" || c.writesTo == "" || row.Cluster == c.writesTo {
		return
	}
	c.add(errorf("cluster_changed", "bigtable.app_profile",
		"see *The app profile fails over* in docs/operations.md: after it, `replicator repair --table "+t.Source+"`",
		"the app profile routes to cluster %s, and %s was written through cluster %s: rows that were not replicated yet "+
			"are older there", c.writesTo, t.Target, row.Cluster))
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

// withdrawCopy removes the estimate of a copy that will not begin: a table is copied at its first
// start only.
func (c *check) withdrawCopy(source string) {
	for _, r := range c.Tables {
		if r.Source == source {
			r.Copy = nil
		}
	}
}
