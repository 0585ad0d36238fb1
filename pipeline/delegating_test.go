package pipeline_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source/export"
	"github.com/tailrace-cdc/replicator/transform"
)

// worker is a process of a distributed engine, without the engine.
type worker struct {
	*run
	order   *delegation.Order
	program *transform.Program
	export  *export.Export
	client  *bigtable.Client
	begin   time.Time

	mu    sync.Mutex // covers lease
	lease *delegation.Lease
	wrote atomic.Int64 // rows
}

var errNoLease = errors.New("the worker has no lease")

// awaitOrder waits until the table has an open order.
func (r *run) awaitOrder() (o *delegation.Order) {
	r.t.Helper()
	r.hastenUntil("the order is open", func() bool {
		seen, err := r.sink.LoadOrder(r.t.Context(), "shop", "Orders")
		if err == nil {
			o = seen.Order
		}
		return o.Open()
	})
	return o
}

// newWorker returns a worker of an order.
func (r *run) newWorker(o *delegation.Order) *worker {
	r.t.Helper()
	w := &worker{run: r, order: o, lease: delegation.NewLease(o), begin: time.Now()}
	ctx := r.t.Context()
	for _, m := range o.Mappings {
		t := transform.Table{
			Pipeline: o.Pipeline, Source: m.Table, Target: o.Target, Schema: m.Schema, View: m.View, TTLAttr: m.TTLAttr,
		}
		var kept transform.Kept
		if err := errors.Join(json.Unmarshal(m.Kept, &kept), kept.Apply(&t)); err != nil {
			r.t.Fatal(err)
		}
		p, problems := transform.Compile(t)
		if p == nil {
			r.t.Fatal(problems)
		}
		if hash := p.Hash(); hex.EncodeToString(hash[:]) != m.Hash {
			r.t.Fatalf("the mapping of %s has another hash", m.Table)
		}
		w.program = p
	}
	var err error
	if w.export, err = export.Open(ctx, o.Export.URL, export.Want{TableID: o.TableID, Source: r.src}); err != nil {
		r.t.Fatal(err)
	}
	if w.export.Digest() != o.Export.Digest || len(w.export.Files) != o.Export.Files {
		r.t.Fatal("another export")
	}
	now := func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.lease.Date(w.clocks()).Time()
	}
	w.client, err = bigtable.Open(ctx, bigtable.Options{
		Pipeline: "shop", Project: "local", Instance: "local", Endpoint: r.front.Addr(), Now: now, Tombstones: o.Tombstones,
	}, zap.NewNop(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = w.client.Close() })
	return w
}

func (w *worker) clocks() protocol.Instant { return protocol.InstantOf(time.Now(), w.begin) }

// keepReading reads the order until ctx ends.
func (w *worker) keepReading(ctx context.Context) {
	for failure.Pause(ctx, 20*time.Millisecond) == nil {
		began := w.clocks()
		seen, err := w.client.LoadOrder(ctx, "shop", "Orders")
		if err != nil {
			continue
		}
		w.mu.Lock()
		w.lease.Note(began, *seen)
		w.mu.Unlock()
	}
}

// verdict returns whether the worker may write.
func (w *worker) verdict() delegation.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lease.Judge(w.clocks())
}

func (w *worker) fresh() error {
	if v := w.verdict(); !v.Permits() {
		return fmt.Errorf("%w: %s", errNoLease, v)
	}
	return nil
}

// work copies file after file, marked or not, until ctx ends, the lease does, or all have a mark.
func (w *worker) work(ctx context.Context, most int) error {
	for v := w.verdict(); v != delegation.Writes; v = w.verdict() {
		if v == delegation.Closed {
			return errNoLease
		}
		if err := failure.Pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	for file := range min(most, w.order.Export.Files) {
		if !w.order.Needs(file) {
			continue
		}
		if err := w.file(ctx, file); err != nil {
			return err
		}
	}
	return nil
}

// file copies one file.
func (w *worker) file(ctx context.Context, file int) error {
	mark := delegation.FileMark{}
	var keys, dec change.Decoder
	err := w.export.ReadFile(ctx, file, 0, func(l export.Line) error {
		keys.Reset()
		dec.Reset()
		img, err := keys.Image(l.Item)
		if err != nil {
			return err
		}
		key, err := w.order.Mappings[0].Schema.Canonical(nil, img)
		if err != nil {
			return err
		}
		mark.Items++
		mark.Bytes += int64(len(l.Item))
		if mark.Items%50 == 0 { // as if the mapping refused it
			mark.HandedBack = append(mark.HandedBack, l.N)
			return nil
		}
		var write transform.Write
		r := transform.Resync{Keys: key, Item: l.Item, Version: w.order.Version, First: w.order.First}
		if err := w.program.Resync(&dec, &r, &write); err != nil {
			return err
		}
		if err := w.client.ApplyInCopy(ctx, w.order.Target, &write, w.fresh); err != nil {
			return err
		}
		w.wrote.Add(int64(len(write.Rows)))
		return nil
	})
	if err != nil {
		return err
	}
	return w.client.StoreFileMark(ctx, w.order, file, mark, w.fresh)
}

// bulkWorld is a world with an old table whose export workers copy.
func bulkWorld(t *testing.T) *world {
	long(t, "15 s")
	w := newWorld(t)
	w.exportable(600)
	folder := w.export("Orders", 4, "")
	w.backfill = pipeline.Backfill{From: "export", URL: "s3://backups/" + folder, ByWorkers: true}
	w.opts = func(o *pipeline.Options) { o.Periods.Order, o.Periods.Closing = 50*time.Millisecond, time.Second }
	return w
}

// reading runs the worker's reading of the order beside the test.
func (w *worker) reading() *worker {
	go w.keepReading(w.t.Context())
	return w
}

// Attack 99: workers copy beside the stream: one is killed half-way, two copy the same files, the
// owner is killed. The daemon alone ends the copy, and a worker that lives on writes nothing.
func TestWorkersCopyBesideTheStream(t *testing.T) {
	w := bulkWorld(t)
	r := w.start("Orders")
	o := r.awaitOrder()
	w.changeItems("Orders", 1, 40)
	if err := r.newWorker(o).reading().work(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	killed, kill := context.WithCancel(t.Context())
	half := r.newWorker(o).reading()
	go func() { _ = half.work(killed, 4) }()
	r.hastenUntil("a worker is half-way", func() bool { return half.wrote.Load() > 100 })
	kill()
	r.kill()
	w.changeItems("Orders", 2, 40)
	r = w.restart("Orders")
	if st := r.table("Orders"); st.State == "running" {
		t.Errorf("it is %s while workers copy", st.State)
	}
	var both sync.WaitGroup
	lives := r.newWorker(o).reading()
	for _, x := range []*worker{lives, r.newWorker(o).reading()} {
		both.Go(func() {
			// The order may be closed before the slower one has finished what both copy.
			if err := x.work(t.Context(), 4); err != nil && !strings.Contains(err.Error(), "no lease: closed") {
				t.Error(err)
			}
		})
	}
	both.Wait()
	r.copied()
	if s := r.fold("Orders"); s.WorkersMayWrite() || s.Copy.Closed == 0 || s.Copy.Total().Items < 600 {
		t.Errorf("%+v", s.Copy)
	}
	before := lives.wrote.Load()
	if err := lives.work(t.Context(), 4); !errors.Is(err, errNoLease) || lives.wrote.Load() != before {
		t.Errorf("a worker lives on: %v, %d rows", err, lives.wrote.Load()-before)
	}
	r.settle()
	r.equal()
	r.ready()
}

// Attack 99: nothing that needs the rows as they are goes on while workers may write; a takeback
// ends them, and the owner copies what is left. Then the table can be fenced, and none writes
// behind it.
func TestWorkersAreTakenBackBeforeACutover(t *testing.T) {
	w := bulkWorld(t)
	r := w.start("Orders")
	o := r.awaitOrder()
	x := r.newWorker(o).reading()
	if err := x.work(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	l, err := r.queue.Log(t.Context(), "Orders")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*checkpoint.Control{
		"a fence":   {Fence: &checkpoint.FenceOrder{ID: "cutover"}},
		"a mapping": {Accept: &checkpoint.Accept{From: r.fold("Orders").Identity.Mapping, To: "other"}},
	} {
		_, err := l.AppendControl(t.Context(), c)
		if !errors.As(err, new(*checkpoint.FenceError)) && !errors.As(err, new(*checkpoint.DelegatedError)) {
			t.Errorf("%s while workers may write: %v", name, err)
		}
	}
	r.control("Orders", &checkpoint.Control{Copy: &checkpoint.CopyOrder{ID: o.Copy, Do: checkpoint.CopyTakeback}})
	r.hastenUntil("the order is closed in the log", func() bool { return !r.fold("Orders").WorkersMayWrite() })
	if err := x.work(t.Context(), 4); !errors.Is(err, errNoLease) {
		t.Errorf("a worker works on: %v", err)
	}
	r.copied()
	r.settle()
	r.equal()
	r.fence("Orders", "cutover")
	r.standing(1)
	if seen, err := r.sink.LoadOrder(t.Context(), "shop", "Orders"); err != nil || !seen.Held || seen.Order.Open() {
		t.Errorf("behind the fence: %+v, %v", seen, err)
	}
}

// Attack 99: a lost log begins a new life, which ends the workers of the one before.
func TestWorkersEndWithTheirLife(t *testing.T) {
	w := bulkWorld(t)
	r := w.start("Orders")
	o := r.awaitOrder()
	x := r.newWorker(o).reading()
	if err := x.work(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	row := r.row("Orders")
	for next := *row; ; next = *row {
		if next.Life++; r.sink.CompareAndSet(t.Context(), row, &next) == nil {
			break
		}
		row = r.row("Orders")
	}
	r.hastenUntil("the worker finds its order void", func() bool { return x.verdict() == delegation.Closed })
	if err := x.file(t.Context(), 2); !errors.Is(err, errNoLease) {
		t.Errorf("a worker works on: %v", err)
	}
}

// TestMappingThatWorkersCannotCopyIsRefused before anything is stored.
func TestMappingThatWorkersCannotCopyIsRefused(t *testing.T) {
	w := bulkWorld(t)
	w.mapping = "mapping: 1\nfamilies: {h: {max_versions: 5}}\nrules:\n" +
		"- {name: r, row: '{pk}#{sk}', cells: [{attr: v, to: \"h:v\"}]}\n"
	r := w.start("Orders")
	r.until("the start is refused", func() bool {
		st := r.table("Orders")
		return len(st.Halts) > 0 || st.State == "halted"
	})
	if seen, err := r.sink.LoadOrder(t.Context(), "shop", "Orders"); err != nil || seen.Order != nil {
		t.Errorf("%+v, %v", seen, err)
	}
}
