package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/cmd/replicator/demo"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify"
)

// progress is a line of demo --json while it plays.
type progress struct {
	Schema  int     `json:"schema"`
	Type    string  `json:"type"` // "progress"
	Elapsed float64 `json:"elapsed_s"`
	Writes  int64   `json:"writes"`
	Changes uint64  `json:"changes"` // in the log
	Rate    float64 `json:"rate_per_s"`
	Lag     float64 `json:"lag_ms"` // of the last probe; -1 before the first
	Shards  int     `json:"shards"`
	Queue   uint64  `json:"queue_bytes"`
	State   string  `json:"state"`
}

// demoSummary is the last line of demo.
type demoSummary struct {
	Schema      int     `json:"schema"`
	Type        string  `json:"type"` // "summary"
	Seed        uint64  `json:"seed"`
	Duration    float64 `json:"duration_s"`
	Changes     int     `json:"changes"`
	Items       int64   `json:"items"`
	Rows        int64   `json:"rows"`
	Cells       int64   `json:"cells"`
	Tables      int     `json:"tables"`
	Expired     int     `json:"ttl_expired"`    // of tables that archive
	Unarchived  int     `json:"ttl_unarchived"` // of tables that only delete, or keep
	Archived    int     `json:"archived"`
	Shards      int     `json:"shards"`
	Splits      int64   `json:"splits"`
	Rotations   int64   `json:"rotations"`
	Kills       int     `json:"kills"`
	Differences int64   `json:"differences"`
	Equal       bool    `json:"equal"`
	Rate        float64 `json:"rate_per_s"`
	Lag         lagMS   `json:"lag_ms"`
	DeadLetters int     `json:"dead_letters"`
	Gaps        int     `json:"gaps"`
}

// sum takes what the replicator says of its tables.
func (p *progress) sum(status pipeline.Status) {
	running := 0
	for _, t := range status.Tables {
		p.Changes, p.Shards, p.Queue = p.Changes+t.Changes, p.Shards+t.Shards.Open, p.Queue+t.Queue.Bytes
		if t.State == "running" {
			running++
		}
	}
	if p.State = "running"; running < len(status.Tables) {
		p.State = fmt.Sprintf("%d of %d tables running", running, len(status.Tables))
	}
}

// words is a line of progress for people.
func (p *progress) words() string {
	return fmt.Sprintf("%9s changes  %7s/s  lag %6.0f ms  %2d open shards  log %8s  %s", humanize.Comma(int64(p.Changes)),
		humanize.Comma(int64(p.Rate)), p.Lag, p.Shards, humanize.IBytes(p.Queue), p.State)
}

// lagMS is from a write to its row, in milliseconds, kills included.
type lagMS struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// ask asks the replicator how it is; false while it does not answer.
func (d *stage) ask(ctx context.Context) (s pipeline.Status, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.admin+"/status", nil)
	if err != nil {
		return s, false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, false
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&s)
	return s, err == nil && len(s.Tables) > 0
}

// show prints a line of progress every second.
func (d *stage) show(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		status, ok := d.ask(ctx)
		if ctx.Err() != nil {
			return nil
		}
		p := progress{Schema: schema, Type: "progress", Elapsed: time.Since(d.began).Seconds(), Writes: d.writer.Calls() + d.gallery.Calls(), Lag: d.probes.last(), State: "down"}
		if ok {
			p.sum(status)
		} else { // what it said last still holds
			p.Changes, p.Shards, p.Queue = d.last.Changes, d.last.Shards, d.last.Queue
		}
		p.Rate = float64(p.Changes-min(p.Changes, d.last.Changes)) / max(0.001, p.Elapsed-d.last.Elapsed)
		if ok {
			d.last = p
		}
		if d.a.json {
			if err := d.a.printJSON(p); err != nil {
				return err
			}
			continue
		}
		if d.bar != nil {
			d.bar.set(int64(p.Elapsed*1000), p.words())
			continue
		}
		d.say("%4.0f s  %s", p.Elapsed, p.words())
	}
}

// compare compares every item with every row, cell by cell, and counts what happened.
func (d *stage) compare(ctx context.Context) (*demoSummary, error) {
	src, err := d.a.source(ctx, d.cfg)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	all, err := d.a.programs(ctx, d.cfg, src)
	if err != nil {
		return nil, err
	}
	sink, err := d.a.bigtable(ctx, d.cfg, src)
	if err != nil {
		return nil, err
	}
	defer sink.Close()
	var total verify.Result
	for _, c := range all {
		if err := d.compareOne(ctx, src, sink, c, &total); err != nil {
			return nil, fmt.Errorf("table %s: %w", c.Source, err)
		}
	}
	return d.count(ctx, &total)
}

// compareOne compares one table and adds what it finds to the total.
func (d *stage) compareOne(ctx context.Context, src *source.Source, sink *bigtable.Client, c *carried, total *verify.Result) error {
	// What drain let expire may have been collected or not.
	o := verify.Options{Dir: d.dir, Now: d.sandbox.Clock.Now().Add(2 * demo.SoonExpired)}
	result, err := verify.Compare(ctx, o, []verify.Source{{Program: c.program, Schema: c.info.Schema, Items: items(src, c.Source)}},
		func(ctx context.Context, f func(*bigtable.Row) error) error {
			return sink.Rows(ctx, c.Target, "", "", verify.Views(c.program), f)
		})
	if err != nil {
		return err
	}
	for _, diff := range result.Differences[:min(10, len(result.Differences))] {
		d.say("difference: %s in %s row %q %s:%q", diff.Kind, c.Target, diff.Row, diff.Family, diff.Qualifier)
	}
	total.Items, total.Rows, total.Cells, total.Count = total.Items+result.Items, total.Rows+result.Rows, total.Cells+result.Cells, total.Count+result.Count
	total.Refused, total.Unproven = total.Refused+result.Refused, total.Unproven+result.Unproven
	return nil
}

// count tells what happened, all tables together.
func (d *stage) count(ctx context.Context, result *verify.Result) (*demoSummary, error) {
	splits, rotations := d.stream.Splits()
	s := &demoSummary{
		Schema: schema, Type: "summary", Seed: d.o.seed, Duration: d.played.Seconds(), Tables: len(d.cfg.Tables),
		Items: result.Items, Rows: result.Rows, Cells: result.Cells, Splits: splits, Rotations: rotations, Kills: d.kills,
		Differences: result.Count, Lag: percentiles(d.probes.lags),
	}
	for _, t := range d.cfg.Tables {
		s.changes(d.sandbox.Ledger, t)
	}
	s.Rate = float64(s.Changes) / d.played.Seconds()
	var err error
	if s.Archived, err = countEvents(d.cfg.Archive.File); err != nil {
		return nil, err
	}
	status, ok := d.ask(ctx)
	if !ok {
		return nil, fmt.Errorf("the replicator does not answer on %s", d.admin)
	}
	for _, t := range status.Tables {
		s.DeadLetters, s.Gaps = s.DeadLetters+t.DeadLetters, s.Gaps+t.Gaps
		s.Shards += t.Shards.Open + t.Shards.Closed + t.Shards.Waiting + t.Shards.Done
	}
	s.Equal = result.Equal() && s.Expired == s.Archived && s.DeadLetters == 0 && s.Gaps == 0
	return s, nil
}

// changes adds the changes of a table.
func (s *demoSummary) changes(book *ledger.Ledger, t config.Table) {
	all, _ := book.Count(t.Source)
	s.Changes += all
	book.Changes(t.Source, func(c ledger.Change) bool {
		switch {
		case !c.TTL:
		case t.OnTTLExpiry == "archive":
			s.Expired++
		default:
			s.Unarchived++
		}
		return true
	})
}

// items reads a whole source table.
func items(src *source.Source, table string) verify.Items {
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

// countEvents counts the different events in the archive's files: at least once means that some may be there twice.
func countEvents(dir string) (int, error) {
	ids := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return 0, err
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return 0, fmt.Errorf("read archive: %w", err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			var event struct{ ID string }
			if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
				return 0, fmt.Errorf("read event in %s: %w", name, err)
			}
			ids[event.ID] = true
		}
		if err := lines.Err(); err != nil {
			return 0, fmt.Errorf("read archive: %w", err)
		}
	}
	return len(ids), nil
}

func percentiles(lags []time.Duration) lagMS {
	if len(lags) == 0 {
		return lagMS{}
	}
	lags = slices.Sorted(slices.Values(lags))
	at := func(q float64) float64 { return float64(lags[int(q*float64(len(lags)-1))].Microseconds()) / 1000 }
	return lagMS{P50: at(0.50), P99: at(0.99)}
}

func (a *app) printSummary(s *demoSummary) error {
	if a.json {
		return a.printJSON(s)
	}
	a.print("%s · %s changes · %s rows · %s cells · %s · %s · %s", render.Count(s.Tables, "table"), humanize.Comma(int64(s.Changes)), humanize.Comma(s.Rows), humanize.Comma(s.Cells),
		render.Count(s.Kills, "kill"), render.Count(int(s.Splits), "split"), render.Count(int(s.Differences), "difference"))
	if s.Expired != s.Archived || s.DeadLetters > 0 || s.Gaps > 0 {
		a.print("NOT equal: %d expired, %d archived, %d dead letters, %d gaps", s.Expired, s.Archived, s.DeadLetters, s.Gaps)
	}
	return nil
}

// freeAddress is a port on loopback that nobody has at this moment.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", exit.Environment(err, "the demo needs free ports on loopback")
	}
	return ln.Addr().String(), ln.Close()
}
