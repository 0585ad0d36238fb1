package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/clients"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/verify/report"
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

// compare compares every item with every row, cell by cell, and sums up what happened.
func (s *Stage) compare(ctx context.Context) (*Summary, error) {
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
	targets := pair.Targets(tables)
	s.o.Say(fmt.Sprintf("comparing every item of %d tables with its rows, cell by cell", len(targets)))
	lines := &fewLines{say: s.o.Say}
	compared := make([][]report.Table, len(targets))
	g, all := errgroup.WithContext(ctx)
	g.SetLimit(comparedAtOnce)
	for i, first := range targets {
		g.Go(func() (err error) {
			compared[i], err = s.compareTable(all, tables, first, lines)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	sum, err := s.summary(ctx, slices.Concat(compared...))
	if err == nil {
		sum.Copied, err = s.countCopied(ctx, clients)
	}
	return sum, err
}

// compareTable compares a target with its sources, by clients of its own.
func (s *Stage) compareTable(
	ctx context.Context, tables *catalog.Catalog, first string, lines io.Writer,
) ([]report.Table, error) {
	own := clients.ForCommand(s.cfg, s.o.Logger)
	defer own.Close()
	both, err := pair.Open(ctx, s.cfg, own, tables, first)
	if err != nil {
		return nil, err
	}
	found, err := audit.Full(ctx, s.cfg, both, audit.Options{Strong: true, Lines: lines})
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", both.Target, err)
	}
	return found, nil
}

// comparedAtOnce is how many tables are compared at once: most of a comparison is waiting.
const comparedAtOnce = 5

// fewLines prints the first differences of all tables, one a line.
type fewLines struct {
	say  func(string)
	mu   sync.Mutex // covers what follows
	said int
}

func (f *fewLines) Write(lines []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for line := range bytes.Lines(lines) {
		if f.said++; f.said <= shownDifferences {
			f.say("difference: " + string(bytes.TrimSpace(line)))
		}
	}
	return len(lines), nil
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

// summary sums up what happened, all tables together.
func (s *Stage) summary(ctx context.Context, compared []report.Table) (*Summary, error) {
	splits, rotations := s.stream.Splits()
	sum := &Summary{
		Type: "summary", Seed: s.o.Seed, Duration: s.played.Seconds(), Tables: len(s.cfg.Tables),
		Splits: splits, Rotations: rotations, Kills: s.kills, Lag: s.lags.percentiles(),
	}
	for i := range compared {
		t := &compared[i]
		sum.Items, sum.Rows, sum.Cells = sum.Items+t.Items, sum.Rows+t.Rows, sum.Cells+t.Cells
		sum.Differences += t.Different + t.Foreign + t.Refused + t.Unproven
	}
	for _, t := range s.cfg.Tables {
		sum.addChanges(s.sandbox.Ledger, t)
	}
	sum.Rate = float64(sum.Changes) / s.played.Seconds()
	var err error
	if sum.Archived, err = s.awaitEvents(ctx, sum.Expired); err != nil {
		return nil, err
	}
	status, err := s.lastStatus(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range status.Tables {
		sum.DeadLetters, sum.Gaps = sum.DeadLetters+t.DeadLetters, sum.Gaps+t.Gaps
		sum.Shards += t.Shards.Open + t.Shards.Closed + t.Shards.Waiting + t.Shards.Done
	}
	sum.Equal = report.Worst(compared) == report.Equal && sum.Expired == sum.Archived && sum.DeadLetters+sum.Gaps == 0
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

// How long objects may take after the last event, and an answer of the replicator.
const (
	archiveTimeout = time.Minute
	answerTimeout  = time.Minute
)

// lastStatus asks until the replicator answers: on a busy machine that may take longer than a
// second.
func (s *Stage) lastStatus(ctx context.Context) (*pipeline.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		if status := s.status(ctx); status != nil {
			return status, nil
		}
		if failure.Pause(ctx, time.Second) != nil {
			return nil, fmt.Errorf("the replicator does not answer on %s", s.cfg.Admin.Listen)
		}
	}
}

// awaitEvents counts the events in the archive's objects, and waits for those that are on their
// way.
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

// countEvents reads the objects of an archive and counts their events: one that is archived twice
// counts twice.
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
