package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
)

// stored compares the tables with what earlier runs left: the pipeline's rows in Bigtable, who owns the targets, and the
// logs. run refuses what is refused here, with the same words.
func (u *checkup) stored(ctx context.Context, all []*carried) {
	if u.sink == nil {
		return
	}
	for _, c := range all {
		if !c.found || c.program == nil {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		err := u.compare(asking, c)
		cancel()
		refused := (*pipeline.RefusedError)(nil)
		switch {
		case err == nil || bigtable.Classify(err) == failure.Missing: // the comparison of the schema says that
		case errors.As(err, &refused):
			u.fault("stored_state", c.path, refused.Hint, "%s", refused.What)
		default:
			u.environment("stored_state", c.path, fmt.Errorf("compare with what is stored: %w", err))
		}
	}
}

// fault notes what is wrong around the configuration.
func (u *checkup) fault(code, path, hint, what string, args ...any) {
	u.around = append(u.around, config.Problem{Severity: "error", Code: code, Path: path, What: fmt.Sprintf(what, args...), Hint: hint})
}

// withdraw takes back a warning that does not hold for a table that was started before.
func (u *checkup) withdraw(code, path string) {
	u.around = slices.DeleteFunc(u.around, func(p config.Problem) bool { return p.Code == code && p.Path == path })
}

// compare returns a *RefusedError where run would.
func (u *checkup) compare(ctx context.Context, c *carried) error {
	owner, err := u.sink.TargetOwner(ctx, c.Target)
	if err != nil {
		return err
	}
	if refused := pipeline.CheckTarget(u.sink, u.cfg.Pipeline, c.Target, owner); refused != nil {
		u.fault("foreign_target", c.path+".target", refused.Hint, "%s", refused.What)
	}
	row, err := u.sink.LoadState(ctx, u.cfg.Pipeline, c.Source)
	if err != nil && !errors.Is(err, bigtable.ErrNoState) {
		return err
	}
	if row != nil {
		u.withdraw("backfill", c.path+".source")
	}
	hash := c.program.Hash()
	want := bigtable.Identity{
		Pipeline: u.cfg.Pipeline, Table: c.Source, TableID: c.info.ID, StreamARN: c.info.StreamARN, MappingHash: hex.EncodeToString(hash[:]),
		Target: u.sink.TargetName(c.Target),
	}
	state := checkpoint.NewState()
	log, err := u.log(ctx, c)
	switch {
	case err != nil:
		return err
	case log != nil:
		want.LogCreated = log.Created().UTC()
		if state, err = log.Fold(ctx); err != nil {
			return err
		}
	case row != nil:
		want.LogCreated = row.Identity.LogCreated // the lost log is said below
	}
	if row != nil {
		if refused := pipeline.CheckIdentity(row, want); refused != nil {
			return refused
		}
	}
	if u.noLogs {
		return nil // the queue's own problem is said
	}
	start := pipeline.Start{Latest: u.cfg.Source.Start.Latest, At: u.cfg.Source.Start.At}
	if refused := pipeline.CheckLog(row, state, want, start); refused != nil {
		return refused
	}
	return nil
}

// log opens the log of a table; nil where there is none.
func (u *checkup) log(ctx context.Context, c *carried) (*queue.Log, error) {
	if u.queue == nil {
		return nil, nil
	}
	log, err := u.queue.Log(ctx, c.Source)
	if errors.Is(err, queue.ErrNoLog) {
		return nil, nil
	}
	return log, err
}

// readable tries each call that reading needs, once for every table: describing one may be allowed where reading is not.
func (u *checkup) readable(ctx context.Context, src *source.Source, c *carried) {
	if !c.found || c.info.StreamARN == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := src.MayRead(ctx, c.info.StreamARN); err != nil {
		u.environment("stream", c.path+".source", exit.Source(err))
	}
}

// adminPort says whether somebody else has the port of the admin server. The daemon of this configuration may have it.
func (u *checkup) adminPort(ctx context.Context) {
	ln, err := listenAdmin(ctx, u.cfg)
	switch {
	case err == nil:
		_ = ln.Close()
	case askDaemon(ctx, u.cfg) == nil:
		u.environment("admin_port", "admin.listen", err)
	}
}

// server compares what the logs need with what the NATS servers and the account say.
func (u *checkup) server(ctx context.Context) {
	s, outside, err := u.queue.ServerInfo(ctx)
	if err != nil {
		u.environment("queue", "queue", exit.Queue(err, u.cfg))
	}
	if !outside || err != nil {
		return
	}
	copies := u.queue.Replicas()
	switch {
	case copies > 1 && s.Cluster == "":
		u.fault("replicas", "queue.replicas", "leave it out, or connect to a cluster", "%d copies of each log need a cluster, the NATS server is a single one", copies)
	case copies > s.Servers:
		u.around = append(u.around, config.Problem{Severity: "warning", Code: "replicas", Path: "queue.replicas", Hint: "are all servers of the cluster up, and do they advertise themselves?",
			What: fmt.Sprintf("%d copies of each log need as many servers, cluster %s tells of %d", copies, s.Cluster, s.Servers)})
	}
	if s.MaxPayload < queue.MaxPayload {
		u.fault("max_payload", "queue.url", "max_payload: 8MB in the configuration of every NATS server",
			"the NATS server takes messages up to %s: a change with two large images halts its table", humanize.IBytes(uint64(s.MaxPayload)))
	}
	if s.Store < 0 {
		return
	}
	need, err := u.queue.UnreservedBytes(ctx, u.sources())
	if err != nil {
		u.environment("queue", "queue", exit.Queue(err, u.cfg))
	} else if left := s.Store - s.Reserved; need*s.Copies > left {
		u.fault("storage", "queue.max_bytes", "a smaller queue.max_bytes, or a larger limit of the account (max_file)",
			"the logs need to reserve %s more, the account has %s of %s left", humanize.IBytes(uint64(need*s.Copies)), humanize.IBytes(uint64(max(left, 0))), humanize.IBytes(uint64(s.Store)))
	}
}

func (u *checkup) sources() (names []string) {
	for _, t := range u.cfg.Tables {
		names = append(names, t.Source)
	}
	return names
}
