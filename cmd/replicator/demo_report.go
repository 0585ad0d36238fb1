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
	Expired     int     `json:"ttl_expired"`
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
		p := progress{Schema: schema, Type: "progress", Elapsed: time.Since(d.began).Seconds(), Writes: d.writer.Calls(), Lag: d.probes.last(), State: "down"}
		if ok {
			t := &status.Tables[0]
			p.Changes, p.Shards, p.Queue, p.State = t.Changes, t.Shards.Open, t.Queue.Bytes, t.State
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
		d.say("%4.0f s  %9s changes  %7s/s  lag %6.0f ms  %2d open shards  log %8s  %s", p.Elapsed, humanize.Comma(int64(p.Changes)),
			humanize.Comma(int64(p.Rate)), p.Lag, p.Shards, humanize.IBytes(p.Queue), p.State)
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
	c := all[0]
	result, err := verify.Compare(ctx, verify.Options{Dir: d.dir},
		[]verify.Source{{Program: c.program, Schema: c.info.Schema, Items: items(src, c.Source)}},
		func(ctx context.Context, f func(*bigtable.Row) error) error {
			return sink.Rows(ctx, c.Target, "", "", verify.Views(c.program), f)
		})
	if err != nil {
		return nil, err
	}
	for _, diff := range result.Differences[:min(10, len(result.Differences))] {
		d.say("difference: %s in row %q %s:%q", diff.Kind, diff.Row, diff.Family, diff.Qualifier)
	}
	return d.count(ctx, result)
}

func (d *stage) count(ctx context.Context, result *verify.Result) (*demoSummary, error) {
	changes, _ := d.sandbox.Ledger.Count(demo.Table)
	splits, rotations := d.stream.Splits()
	s := &demoSummary{
		Schema: schema, Type: "summary", Seed: d.o.seed, Duration: d.played.Seconds(), Changes: changes,
		Items: result.Items, Rows: result.Rows, Cells: result.Cells, Splits: splits, Rotations: rotations, Kills: d.kills,
		Differences: result.Count, Rate: float64(changes) / d.played.Seconds(), Lag: percentiles(d.probes.lags),
	}
	d.sandbox.Ledger.Changes(demo.Table, func(c ledger.Change) bool {
		if c.TTL {
			s.Expired++
		}
		return true
	})
	var err error
	if s.Archived, err = countEvents(d.cfg.Archive.File); err != nil {
		return nil, err
	}
	status, ok := d.ask(ctx)
	if !ok {
		return nil, fmt.Errorf("the replicator does not answer on %s", d.admin)
	}
	t := &status.Tables[0]
	s.DeadLetters, s.Gaps = t.DeadLetters, t.Gaps
	s.Shards = t.Shards.Open + t.Shards.Closed + t.Shards.Waiting + t.Shards.Done
	s.Equal = result.Equal() && s.Expired == s.Archived && s.DeadLetters == 0 && s.Gaps == 0
	return s, nil
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
	a.print("%s changes · %s rows · %s cells · %s · %s · %s", humanize.Comma(int64(s.Changes)), humanize.Comma(s.Rows), humanize.Comma(s.Cells),
		count(s.Kills, "kill"), count(int(s.Splits), "split"), count(int(s.Differences), "difference"))
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
		return "", surroundings(err, "the demo needs free ports on loopback")
	}
	return ln.Addr().String(), ln.Close()
}
