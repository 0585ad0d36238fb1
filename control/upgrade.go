package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/rollout"
	"github.com/tailrace-cdc/replicator/pipeline/staterow"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/presence"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
)

// LogFormats are the formats of a pipeline and its logs, as `upgrade` prints them.
type LogFormats struct {
	Schema   int          `json:"schema"` // set by the command
	Pipeline string       `json:"pipeline"`
	Version  string       `json:"version"` // of this program, set by the command
	Newest   int          `json:"newest"`  // its newest format
	Format   int          `json:"format"`  // of the pipeline
	Row      *rollout.Row `json:"row"`     // null: no replicator has run yet, or the row was lost
	Logs     []LogFormat  `json:"logs"`
	Members  int          `json:"members"` // replicators that are heard
	Older    []string     `json:"older"`   // who could not read the newest format
	// Finalized means that the pipeline has the newest format of this program.
	Finalized bool `json:"finalized"`
}

// LogFormat is the format of the log of a table.
type LogFormat struct {
	rollout.Claim
	Format int `json:"format"`
}

// FormatStore returns where the format of the pipeline is kept.
func FormatStore(ctx context.Context, cfg *config.Config, clients *clients.Clients) (rollout.Store, error) {
	if cfg.Replicates() {
		sink, err := clients.Bigtable(ctx)
		return rollout.InBigtable(sink), err
	}
	b, err := clients.Bucket(ctx, bucket.Options{})
	return rollout.InBucket(b, func(context.Context) error { return nil }), err
}

// Formats reads which formats the pipeline and its logs have. It refuses a pipeline that this build
// cannot read.
func Formats(ctx context.Context, cfg *config.Config, q *queue.Queue, store rollout.Store) (*LogFormats, error) {
	r := &LogFormats{
		Pipeline: cfg.Pipeline, Newest: checkpoint.Format, Logs: []LogFormat{}, Older: []string{},
	}
	var err error
	if r.Row, err = store.Load(ctx, cfg.Pipeline); err != nil {
		return nil, staterow.Explain(err)
	}
	if refused := r.Row.Check(cfg.Pipeline); refused != nil {
		return nil, failure.With(failure.Unready, refused.Hint, refused)
	}
	if r.Row != nil {
		r.Format = r.Row.Log
	}
	tables, err := q.Tables(ctx)
	if err != nil {
		return nil, err
	}
	lowest := 0
	var claims []rollout.Claim
	for _, table := range tables {
		one, err := formatOf(ctx, q, table)
		if err != nil {
			return nil, err
		}
		if one.Format == 0 {
			continue // nobody has claimed it yet, or it was retired meanwhile
		}
		r.Logs = append(r.Logs, one)
		claims = append(claims, one.Claim)
		if lowest == 0 || one.Format < lowest {
			lowest = one.Format
		}
	}
	if r.Row == nil {
		if r.Format = lowest; lowest == 0 {
			r.Format = checkpoint.Format
		}
	}
	r.Finalized = r.Format == checkpoint.Format && r.Row != nil
	members, err := heard(ctx, q)
	if err != nil {
		return nil, err
	}
	r.Members = len(members)
	if d := (*rollout.Disagreement)(nil); errors.As(rollout.Agreed(members, claims, checkpoint.Format), &d) {
		r.Older = append(r.Older, d.Older...)
	}
	return r, nil
}

// formatOf reads the format of a log.
func formatOf(ctx context.Context, q *queue.Queue, table string) (LogFormat, error) {
	l, err := q.Log(ctx, table)
	if errors.Is(err, queue.ErrNoLog) {
		return LogFormat{}, nil
	}
	if err != nil {
		return LogFormat{}, err
	}
	s, err := l.Fold(ctx)
	if newer := (*checkpoint.NewerFormatError)(nil); errors.As(err, &newer) {
		return LogFormat{},
			failure.With(failure.Unready, "use the newer program", fmt.Errorf("read log of %s: %w", table, err))
	}
	if err != nil {
		return LogFormat{}, err
	}
	one := LogFormat{Claim: rollout.Claim{Table: table, Owner: s.Owner, Reads: s.Reads}, Format: s.Format}
	if s.Released {
		one.Owner, one.Reads = "", 0
	}
	return one, nil
}

// listenFor is how long a command listens for replicators, which publish every two seconds.
const listenFor = 3 * time.Second

// heard returns the replicators of the pipeline that publish their presence. A replicator with the
// embedded server is alone and publishes nothing.
func heard(ctx context.Context, q *queue.Queue) (all []rollout.Member, err error) {
	group := q.Group(presence.Options{})
	if group == nil {
		return nil, nil
	}
	members, err := group.Listen(ctx, listenFor)
	for i := range members {
		all = append(all, rollout.Member{Owner: members[i].Member, Build: members[i].Build, Reads: members[i].Reads})
	}
	return all, err
}

// Raise raises the pipeline to the newest format of this program. version is the program's.
func (r *LogFormats) Raise(ctx context.Context, store rollout.Store, version string) error {
	row, err := rollout.Raise(ctx, store, r.Pipeline, rollout.Row{
		Log: checkpoint.Format, Build: version, By: rollout.ByFinalize, Since: time.Now(),
	})
	if err != nil {
		return err
	}
	r.Row, r.Format, r.Finalized = row, row.Log, true
	return nil
}
