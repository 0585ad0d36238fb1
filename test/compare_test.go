package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/test/oracle"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// sides holds clients of the source and of Bigtable that bypass the taps, to compare the two.
type sides struct {
	w    *world
	src  *source.Source
	sink *bigtable.Client
}

// openPair opens both clients until the test ends.
func (w *world) openPair() *sides {
	w.t.Helper()
	ctx := w.t.Context()
	from := source.Options{Region: "us-east-1", Endpoint: w.Endpoint(), DateTrust: -1}
	src, err := source.Open(ctx, from, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(src.Close)
	to := bigtable.Options{Project: "local", Instance: "local", Endpoint: w.Bigtable.Addr(), Now: w.Clock.Now}
	sink, err := bigtable.Open(ctx, to, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = sink.Close() })
	return &sides{w: w, src: src, sink: sink}
}

// target returns the name of the Bigtable table of a source table.
func target(table string) string { return strings.ToLower(table) }

// compile compiles a table's mapping, which is in the file named after its target; the default
// mapping without a file.
func (s *sides) compile(table string) *transform.Program {
	s.w.t.Helper()
	info, err := s.src.Table(s.w.t.Context(), table)
	if err != nil {
		s.w.t.Fatal(err)
	}
	t := transform.Table{
		Pipeline: "shop", Source: table, Target: target(table),
		Schema: info.Schema, View: info.View, TTLAttr: info.TTLAttr, StripGlobal: true, Getenv: os.Getenv,
	}
	file := filepath.Join(s.w.dir, target(table)+".yaml")
	if text, err := os.ReadFile(file); err == nil {
		t.Mapping, _ = transform.ParseMapping(file, text)
	}
	program, problems := transform.Compile(t)
	if program == nil {
		s.w.t.Fatalf("compile %s: %v", table, problems)
	}
	return program
}

// compare compares a table with its target, cell by cell, as a reader of the target sees them.
func (s *sides) compare(ctx context.Context, table string) error {
	return s.compareWith(ctx, table, target(table))
}

// compareWith is compare with another target than that of the configuration.
func (s *sides) compareWith(ctx context.Context, table, target string) error {
	s.w.t.Helper()
	program := s.compile(table)
	items := func(ctx context.Context, f func(change.Image) error) error { return s.items(ctx, table, f) }
	rows := func(ctx context.Context, f func(*bigtable.Row) error) error {
		return s.sink.Rows(ctx, target, "", "", verify.Views(program), f)
	}
	result, err := oracle.Compare(ctx, oracle.Options{ShowValues: true, Now: s.w.Clock.Now()},
		[]oracle.Source{{Program: program, Schema: program.Table().Schema, Items: items}}, rows)
	if err != nil {
		return err
	}
	s.w.t.Logf("%s: %d items, %d rows, %d cells compared", table, result.Items, result.Rows, result.Cells)
	if !result.Equal() {
		return fmt.Errorf("%d differences, %d refused, %d unproven: %+v", result.Count, result.Refused, result.Unproven,
			result.Differences[:min(5, len(result.Differences))])
	}
	return nil
}

// items calls f with each item of a table. The image is valid until f returns.
func (s *sides) items(ctx context.Context, table string, f func(change.Image) error) error {
	var dec change.Decoder
	for page, err := range s.src.Scan(ctx, table, 0, 1) {
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			img, err := dec.Image(item)
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

// stored returns every cell of the families with its timestamp, guards included, by row. It leaves
// out the tombstones of shared rows, because they depend on which changes were coalesced.
func (s *sides) stored(name string, families []transform.Family) map[string][]string {
	s.w.t.Helper()
	views := []bigtable.View{{Family: "_tr_live", Versions: 1}}
	if !s.w.shared {
		views = append(views, bigtable.View{Family: "_tr_dead"})
	}
	for _, f := range families {
		views = append(views, bigtable.View{Family: f.Name, Versions: max(1, f.MaxVersions)})
	}
	rows := map[string][]string{}
	err := s.sink.Rows(s.w.t.Context(), name, "", "", views, func(r *bigtable.Row) error {
		for _, c := range r.Cells {
			cell := fmt.Sprintf("%s:%q@%d=%q", c.Family, c.Qualifier, c.Time.UnixMilli(), c.Value)
			rows[string(r.Key)] = append(rows[string(r.Key)], cell)
		}
		slices.Sort(rows[string(r.Key)])
		return nil
	})
	if err != nil {
		s.w.t.Fatal(err)
	}
	return rows
}

// logged is the content of a log, with copies of its changes.
type logged struct {
	kinds   []checkpoint.Kind
	entries []*checkpoint.Entry
	changes []*change.Change
	state   *checkpoint.State
}

// readLog reads a table's log as the commands do: from a running daemon, or from its directory.
func (w *world) readLog(table string) *logged {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	o := queue.Options{Pipeline: "shop", Dir: filepath.Join(w.dir, "data")}
	if strings.Contains(w.queue, "url:") {
		o.Dir, o.URL = "", w.NATS.URL()
	}
	q, err := queue.OpenClient(ctx, o, zap.NewNop())
	must(err)
	defer func() { _ = q.Close() }()
	l, err := q.Log(ctx, table)
	must(err)
	info, err := l.Info(ctx)
	must(err)
	all := &logged{}
	all.state, err = l.Fold(ctx)
	must(err)
	r, err := l.Read(ctx, 0, checkpoint.Hash{})
	must(err)
	defer r.Close(ctx)
	for seq := uint64(0); seq < info.Last; {
		var e *checkpoint.Entry
		seq, e, err = r.Next(ctx)
		must(err)
		all.kinds, all.entries = append(all.kinds, e.Kind), append(all.entries, e)
		if e.Kind != checkpoint.KindFrame {
			continue
		}
		_, err = frame.Unpack(e, nil, func(_ *checkpoint.PageHead, c *change.Change) error {
			own := *c // each frame has its own buffer, so the slices stay valid
			all.changes = append(all.changes, &own)
			return nil
		})
		must(err)
	}
	return all
}

// logIsExact compares the log with the committed changes: each must be there once, with its images,
// and the versions of an item must grow.
func (w *world) logIsExact(table string, l *logged) {
	w.t.Helper()
	var got []ledger.Delivery
	for _, c := range l.changes {
		got = append(got, ledger.Delivery{
			Table: table, Shard: c.Feed.Shard, Seq: string(c.SequenceNumber), Images: ledger.HashImages(c.New, c.Old),
		})
	}
	if v := w.Ledger.Check(got, table); !v.Exact {
		w.t.Errorf("the log is not what was committed: %+v", v)
	}
	last := map[uint64]int64{}
	for _, c := range l.changes {
		if c.Version <= change.Version(last[c.KeyHash]) {
			w.t.Errorf("version %d of an item after its version %d", c.Version, last[c.KeyHash])
		}
		last[c.KeyHash] = int64(c.Version)
	}
}

// replayIsEqual applies a log to an empty table without any fault, and compares the result with the
// target: all cells with their timestamps.
func (s *sides) replayIsEqual(table string, l *logged) {
	s.w.t.Helper()
	ctx := s.w.t.Context()
	program := s.compile(table)
	const fresh = "replayed"
	tables := tableschema.Tables([]tableschema.Table{{Name: fresh, Families: program.Families()}}, 7*24*time.Hour)
	if _, err := s.sink.Ensure(ctx, tables); err != nil {
		s.w.t.Fatal(err)
	}
	items, order := map[string][]*change.Change{}, []string{}
	for _, c := range l.changes {
		key := string(c.Keys)
		if items[key] == nil {
			order = append(order, key)
		}
		items[key] = append(items[key], c)
	}
	var write transform.Write
	for _, key := range order {
		if err := program.Coalesce(&change.Decoder{}, items[key], &write); err != nil {
			s.w.t.Fatal(err)
		}
		if err := s.sink.Apply(ctx, fresh, &write); err != nil {
			s.w.t.Fatal(err)
		}
	}
	want, got := s.stored(fresh, program.Families()), s.stored(target(table), program.Families())
	if diff := cmp.Diff(want, got); diff != "" {
		s.w.t.Errorf("a replay without faults (-) and the target (+) differ:\n%s",
			strings.TrimSpace(diff[:min(len(diff), 4000)]))
	}
}
