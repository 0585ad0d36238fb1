package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify"
)

// Summary is the last line of demo --json.
type Summary struct {
	Schema      int     `json:"schema"` // set by the command
	Type        string  `json:"type"`   // "summary"
	Seed        uint64  `json:"seed"`
	Duration    float64 `json:"duration_s"`
	Changes     int     `json:"changes"`
	Copied      int64   `json:"copied"` // items that were copied, also those that were put before the scan came to them
	Items       int64   `json:"items"`
	Rows        int64   `json:"rows"`
	Cells       int64   `json:"cells"`
	Tables      int     `json:"tables"`
	Expired     int     `json:"ttl_expired"`    // in tables that archive
	Unarchived  int     `json:"ttl_unarchived"` // in tables that only delete, or keep
	Archived    int     `json:"archived"`
	Shards      int     `json:"shards"`
	Splits      int64   `json:"splits"`
	Rotations   int64   `json:"rotations"`
	Kills       int     `json:"kills"`
	Differences int64   `json:"differences"`
	Equal       bool    `json:"equal"`
	Rate        float64 `json:"rate_per_s"`
	Lag         Lag     `json:"lag_ms"`
	DeadLetters int     `json:"dead_letters"`
	Gaps        int     `json:"gaps"`

	Cutover *Certified `json:"cutover,omitempty"`
}

// shownDifferences is how many differences of a table are printed.
const shownDifferences = 10

// Compare compares every item with every row, cell by cell, and sums up what happened.
func (s *Stage) Compare(ctx context.Context) (*Summary, error) {
	clients := clients.ForCommand(s.cfg, s.o.Logger)
	defer clients.Close()
	src, err := clients.Source(ctx)
	if err != nil {
		return nil, err
	}
	tables, err := catalog.Load(ctx, s.cfg, src)
	if err != nil {
		return nil, err
	}
	sink, err := clients.Bigtable(ctx)
	if err != nil {
		return nil, err
	}
	var total verify.Result
	for _, t := range tables.Tables {
		if err := s.compareTable(ctx, src, sink, t, &total); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Source, err)
		}
	}
	sum, err := s.summary(ctx, &total)
	if err == nil {
		sum.Copied, err = s.countCopied(ctx, clients)
	}
	return sum, err
}

// countCopied returns how many items were copied, all tables together, as the logs say.
func (s *Stage) countCopied(ctx context.Context, clients *clients.Clients) (n int64, err error) {
	if _, err := clients.RunningQueue(ctx); err != nil {
		return 0, err
	}
	_, logs, err := control.NewObserver(s.cfg, s.cfg.Tables, clients).Look(ctx)
	for _, l := range logs {
		if l.State.Copy != nil {
			n += l.State.Copy.Total().Items
		}
	}
	return n, err
}

// compareTable compares one table and adds the result to the total.
func (s *Stage) compareTable(
	ctx context.Context, src *source.Source, sink *bigtable.Client, t *catalog.Table, total *verify.Result,
) error {
	// Items that Drain expired may have been deleted or not: the comparison accepts both.
	o := verify.Options{Dir: s.dir, Now: s.sandbox.Clock.Now().Add(2 * SoonExpired)}
	from := []verify.Source{{Program: t.Program, Schema: t.Info.Schema, Items: scan(src, t.Source)}}
	result, err := verify.Compare(ctx, o, from, func(ctx context.Context, f func(*bigtable.Row) error) error {
		return sink.Rows(ctx, t.Target, "", "", verify.Views(t.Program), f)
	})
	if err != nil {
		return err
	}
	for _, diff := range result.Differences[:min(shownDifferences, len(result.Differences))] {
		s.o.Say(fmt.Sprintf("difference: %s in %s row %q %s:%q", diff.Kind, t.Target, diff.Row, diff.Family, diff.Qualifier))
	}
	total.Items, total.Rows, total.Cells = total.Items+result.Items, total.Rows+result.Rows, total.Cells+result.Cells
	total.Count, total.Refused, total.Unproven =
		total.Count+result.Count, total.Refused+result.Refused, total.Unproven+result.Unproven
	return nil
}

// scan reads a whole source table.
func scan(src *source.Source, table string) verify.Items {
	return func(ctx context.Context, f func(change.Image) error) error {
		var dec change.Decoder
		for page, err := range src.Scan(ctx, table, 0, 1) {
			if err != nil {
				return err
			}
			for _, raw := range page.Items {
				img, err := dec.Image(raw)
				if err == nil {
					err = f(img)
				}
				if err != nil {
					return err
				}
				dec.Reset()
			}
		}
		return nil
	}
}

// summary sums up what happened, all tables together.
func (s *Stage) summary(ctx context.Context, result *verify.Result) (*Summary, error) {
	splits, rotations := s.stream.Splits()
	sum := &Summary{
		Type: "summary", Seed: s.o.Seed, Duration: s.played.Seconds(), Tables: len(s.cfg.Tables),
		Items: result.Items, Rows: result.Rows, Cells: result.Cells, Splits: splits, Rotations: rotations, Kills: s.kills,
		Differences: result.Count, Lag: s.lags.percentiles(),
	}
	for _, t := range s.cfg.Tables {
		sum.addChanges(s.sandbox.Ledger, t)
	}
	sum.Rate = float64(sum.Changes) / s.played.Seconds()
	var err error
	if sum.Archived, err = s.awaitEvents(ctx, sum.Expired); err != nil {
		return nil, err
	}
	status := s.status(ctx)
	if status == nil {
		return nil, fmt.Errorf("the replicator does not answer on %s", s.cfg.Admin.Listen)
	}
	for _, t := range status.Tables {
		sum.DeadLetters, sum.Gaps = sum.DeadLetters+t.DeadLetters, sum.Gaps+t.Gaps
		sum.Shards += t.Shards.Open + t.Shards.Closed + t.Shards.Waiting + t.Shards.Done
	}
	sum.Equal = result.Equal() && sum.Expired == sum.Archived && sum.DeadLetters == 0 && sum.Gaps == 0
	return sum, nil
}

// addChanges adds the changes of a table, as the sandbox's ledger counts them.
func (sum *Summary) addChanges(l *ledger.Ledger, t config.Table) {
	all, _ := l.Count(t.Source)
	sum.Changes += all
	l.Changes(t.Source, func(c ledger.Change) bool {
		switch {
		case !c.TTL:
		case t.OnTTLExpiry == "archive":
			sum.Expired++
		default:
			sum.Unarchived++
		}
		return true
	})
}

// archiveTimeout is how long objects may take after the last event.
const archiveTimeout = time.Minute

// awaitEvents counts the events in the archive's objects, and waits for those that are on their way.
func (s *Stage) awaitEvents(ctx context.Context, want int) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, archiveTimeout)
	defer cancel()
	for {
		if n, err = countEvents(ctx, s.cfg.Archive.URL); err != nil || n >= want {
			return n, err
		}
		if failure.Pause(ctx, time.Second) != nil {
			return n, nil // the summary says that they differ
		}
	}
}

// countEvents reads the objects of an archive and counts their events: one that is archived twice counts twice.
func countEvents(ctx context.Context, url string) (n int, err error) {
	b, err := bucket.Open(ctx, url, bucket.Options{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for x, err := range b.List(ctx, layout.Table(Table)) {
		if err != nil {
			return 0, err
		}
		r, err := b.Open(ctx, x.Name)
		if err != nil {
			return 0, err
		}
		for _, err := range object.Read(r, r.Size()) {
			if err != nil {
				return 0, errors.Join(fmt.Errorf("read %s: %w", x.Name, err), r.Close())
			}
			n++
		}
		if err := r.Close(); err != nil {
			return 0, err
		}
	}
	return n, nil
}
