package daemon

import (
	"context"
	"slices"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// find finds the tables of the selections, if the file has some. An error of one table halts that
// table only: a newly created table must not keep the daemon from starting.
func (d *Daemon) find(ctx context.Context, src *source.Source, q *queue.Queue) error {
	if !d.cfg.Selecting() {
		return nil
	}
	d.finder = catalog.New(d.cfg, src, q, d.log)
	cfg, err := d.finder.First(ctx)
	if err != nil {
		return failure.With(failure.Unready, "see `replicator check`", err)
	}
	d.cfg = cfg
	d.follow(cfg)
	for _, t := range cfg.Tables {
		if t.Found {
			useTable(src, cfg, &t)
		}
	}
	return nil
}

// useTable tells the client of DynamoDB, which is made before the tables are found, how to read
// one.
func useTable(src *source.Source, cfg *config.Config, t *config.Table) {
	src.UseHeartbeats(t.Source, clients.HeartbeatKeys(t.Heartbeat))
	src.UseIdlePoll(t.Source, cfg.Poll(t))
}

// follow takes over a configuration that has other tables.
func (d *Daemon) follow(cfg *config.Config) {
	d.now.Store(cfg)
	d.heap.Fit(cfg)
}

// growing is a pipeline with tables that come and go, for package catalog.
type growing struct {
	d *Daemon
	*pipeline.Pipeline
	src *source.Source
}

// Add begins to replicate a table.
func (g growing) Add(ctx context.Context, cfg *config.Config, t config.Table) error {
	useTable(g.src, cfg, &t)
	g.d.follow(cfg)
	o := TableOptions(cfg, g.src, t)
	g.d.watch(&t, &o)
	return g.Pipeline.Add(ctx, o)
}

// ReadToEnd reports whether everything of a table's stream is applied that there will ever be.
func (g growing) ReadToEnd(source string) bool {
	return slices.ContainsFunc(g.Status().Tables, func(t status.Table) bool { return t.Source == source && t.Ended })
}
