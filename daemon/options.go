package daemon

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// PipelineOptions returns the options of package pipeline that the configuration holds: all but the
// owner, the clients and the flags of run. src describes tables when their mappings are compiled.
func PipelineOptions(cfg *config.Config, src *source.Source) pipeline.Options {
	t := &cfg.Protocol
	o := pipeline.Options{
		Name: cfg.Pipeline, Memory: clients.Budget(cfg), CopyMemory: int64(cfg.Memory.Copy),
		Calls:   apply.CallsIn(clients.CallMemory(cfg)),
		Scratch: cfg.Scratch, PastHour: filepath.Join(cfg.Scratch, "hours", cfg.Pipeline+".gob"), Start: clients.Start(cfg),
		Periods: pipeline.Periods{
			ClaimTTL: time.Duration(t.ClaimTTL), Beat: time.Duration(t.Beat), Listing: time.Duration(t.Listing),
			Describe: time.Duration(t.Describe), Mark: time.Duration(t.MarkInterval), Trim: time.Duration(t.Trim),
			Retry: time.Duration(t.RetryHalted), Shutdown: time.Duration(cfg.ShutdownTimeout), Lead: time.Duration(t.Lead),
			Patience: time.Duration(t.Patience),
		},
	}
	o.Grows = cfg.Selecting()
	for _, table := range cfg.Tables {
		o.Tables = append(o.Tables, TableOptions(cfg, src, table))
	}
	return o
}

// TableOptions returns the options of a table of a configuration. That has all tables that share
// its target.
func TableOptions(cfg *config.Config, src *source.Source, table config.Table) pipeline.Table {
	o := tableOptions(cfg, &table)
	o.Compile = func(info source.TableInfo) (*transform.Program, error) {
		ctx, cancel := context.WithTimeout(context.Background(), compileTimeout)
		defer cancel()
		fresh, err := cfg.ReadMappingsAgain()
		if err != nil {
			return nil, err
		}
		return catalog.CompileTable(ctx, fresh, src, table, info)
	}
	o.Sharing = func(info source.TableInfo) (others []*transform.Program, err error) {
		own, all, err := compileTarget(src, cfg, table, info, nil)
		return slices.DeleteFunc(all, func(p *transform.Program) bool { return p == own }), err
	}
	o.CompileKept = func(
		info source.TableInfo, text []byte,
	) (own *transform.Program, all []*transform.Program, err error) {
		return compileTarget(src, cfg, table, info, text)
	}
	return o
}

// compileTarget compiles the mappings of all tables that share a table's target.
func compileTarget(
	src *source.Source, cfg *config.Config, table config.Table, info source.TableInfo, kept []byte,
) (own *transform.Program, all []*transform.Program, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), compileTimeout)
	defer cancel()
	return catalog.CompileTarget(ctx, cfg, src, table, info, kept)
}

// compileTimeout is how long DynamoDB has to describe the tables that share a target, when one of
// them is compiled.
const compileTimeout = 30 * time.Second

// tableOptions returns what the configuration holds of a table.
func tableOptions(cfg *config.Config, table *config.Table) pipeline.Table {
	return pipeline.Table{
		Source: table.Source, Target: table.Target, Late: clients.LateAfter(cfg, table),
		OnReject: table.OnReject, OnGap: table.OnGap,
		Backfill: backfill(table.Backfill), Heartbeat: heartbeats(table.Heartbeat), Archive: clients.TableArchive(cfg, table),
		Verify: pipeline.Verify{ReadUnits: table.Verify.ReadUnits.Absolute, Percent: table.Verify.ReadUnits.Percent},
	}
}

// backfill returns how a table is copied.
func backfill(b config.Backfill) pipeline.Backfill {
	return pipeline.Backfill{
		From: b.From, URL: b.URL, Bucket: b.Bucket, Prefix: b.Prefix, ByWorkers: b.ByWorkers(),
		ReadUnits: b.ReadUnits.Absolute, Percent: b.ReadUnits.Percent, Segments: b.Segments, WriteRows: float64(b.WriteRows),
	}
}

// heartbeats returns which heartbeats a table gets.
func heartbeats(h config.Heartbeat) pipeline.Heartbeat {
	if !h.Write {
		return pipeline.Heartbeat{}
	}
	return pipeline.Heartbeat{Keys: clients.HeartbeatKeys(h), Every: time.Duration(h.Every)}
}
