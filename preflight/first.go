package preflight

import (
	"context"
	"errors"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// FirstStarts returns, for the tables that no run has started yet, what their copies take, a
// sentence each, and which tables are not copied because of a later start. It covers the described
// tables only, and leaves out tables if Bigtable does not return their state in time: the pipeline
// waits for that by itself.
func FirstStarts(
	ctx context.Context, cfg *config.Config, tables *catalog.Catalog, sink *bigtable.Client,
) (copies []string, problems []problem.Problem) {
	ctx, cancel := context.WithTimeout(ctx, clients.AskTimeout)
	defer cancel()
	for _, t := range tables.Tables {
		if !t.Described || t.ArchivedOnly() {
			continue
		}
		_, err := sink.LoadState(ctx, cfg.Pipeline, t.Source)
		if !errors.Is(err, bigtable.ErrNoState) && bigtable.Classify(err) != failure.Missing {
			continue
		}
		found := firstStart(t, cfg)
		problems = append(problems, found...)
		if t.Info.Items == 0 || len(found) > 0 {
			continue
		}
		if text := EstimateCopy(&t.Info, t.Backfill).Sentence(); text != "" {
			copies = append(copies, t.Source+" → "+t.Target+": "+text)
		}
	}
	return copies, problems
}

// firstStart warns of what a first start alone decides: a table without the key backfill is copied,
// unless a later start leaves out the changes that a copy needs.
func firstStart(t *catalog.Table, cfg *config.Config) []problem.Problem {
	if t.Backfill.From != "" {
		return nil // config has checked it
	}
	what := t.Backfill.LeavesOut(cfg.Source.Start)
	if what == "" {
		return nil
	}
	return []problem.Problem{warnf(codeBackfill, "source.start", config.LaterStartHint,
		"the first start of %s does not copy the items that it holds: with a copy, %s", t.Source, what)}
}
