package archiving

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/journal"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/sink/archive/object"
	"github.com/tailrace-cdc/replicator/transform"
)

// shared is the queue of the tests that leave the server as it is: each of them has a table of its
// own.
var shared *queue.Queue

var tables atomic.Int64

func TestMain(m *testing.M) {
	if dir := os.Getenv(childServer); dir != "" {
		if err := serveChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "archiving-")
	if err == nil {
		shared, err = queue.Open(context.Background(), queueOptions(dir), zap.NewNop(), prometheus.NewRegistry())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "open the queue:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = errors.Join(shared.Close(), os.RemoveAll(dir))
	os.Exit(code)
}

func queueOptions(dir string) queue.Options {
	return queue.Options{
		Pipeline: "shop", Dir: dir, Logs: 256, MaxBytes: 2 << 20, LettersMaxBytes: 1 << 20, ArchiveMaxBytes: 2 << 20,
		AckTimeout: 10 * time.Second, IdleCheck: 50 * time.Millisecond,
	}
}

// world is the archive of one table, its bucket and what was deleted.
type world struct {
	t     testing.TB
	q     *queue.Queue
	log   *queue.Log
	dir   string // of the bucket
	files *flaky
	epoch uint64
	now   atomic.Int64
	known checkpoint.ArchiveHead // what the table's log has of the archive's stream
	edit  func(*Options)         // of each Archiver from now on; may be nil

	mu      sync.Mutex // covers what follows
	records []ledger.Record
	next    int
	halts   map[string]string // code by sink, as the log has them
	sent    map[string]int    // by id
	refuse  error             // what the subject returns
	largest int               // bytes of an event that the subject takes; 0: any
	letters map[string]string // code by id of the event
	noRoom  error             // what the dead letters return
}

const (
	table = "Sessions"
	hour0 = layout.Hour(494_000)
)

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, next: 1000, halts: map[string]string{}, sent: map[string]int{}, letters: map[string]string{}}
	w.dir = t.TempDir()
	b, err := bucket.Open(t.Context(), "file://"+w.dir, bucket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	w.files = &flaky{Bucket: b}
	w.now.Store(int64(hour0) * 3600_000)
	w.use(shared, fmt.Sprint("table-", tables.Add(1)))
	return w
}

// use lets the archive have its stream in a queue.
func (w *world) use(q *queue.Queue, name string) {
	w.t.Helper()
	l, err := q.CreateLog(w.t.Context(), name, "token")
	if err != nil {
		w.t.Fatal(err)
	}
	w.q, w.log = q, l
}

// flaky is a bucket whose Create fails on demand.
type flaky struct {
	bucket.Bucket

	mu            sync.Mutex // covers the hooks
	before, after func(name string) error
}

func (f *flaky) Create(ctx context.Context, name string, file *os.File, size int64) error {
	f.mu.Lock()
	before, after := f.before, f.after
	f.mu.Unlock()
	if strings.Contains(name, layout.Probe) {
		before, after = nil, nil
	}
	if before != nil {
		if err := before(name); err != nil {
			return err
		}
	}
	if err := f.Bucket.Create(ctx, name, file, size); err != nil || after == nil {
		return err
	}
	return after(name)
}

// hook sets what happens before and after something is created; nil: nothing.
func (f *flaky) hook(before, after func(name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// publisher is the subject of a world.
type publisher struct{ w *world }

func (p publisher) Write(_ context.Context, messages []archive.Message) (refused []archive.Message, err error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.w.refuse != nil {
		return nil, p.w.refuse
	}
	for _, m := range messages {
		if p.w.largest > 0 && len(m.Body) > p.w.largest {
			refused = append(refused, m)
			continue
		}
		p.w.sent[m.ID]++
	}
	return refused, nil
}

// run is one life of the table.
type run struct {
	*Archiver
	w     *world
	crash func() // ends it where it is; it need not have ended then
	dying context.Context
	done  chan struct{}
}

// start starts an owner with a higher epoch than all before.
func (w *world) start() *run {
	w.t.Helper()
	o := w.options()
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{Archiver: New(o), w: w, crash: cancel, dying: ctx, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		_ = r.Run(ctx)
	}()
	w.t.Cleanup(r.end)
	return r
}

// options returns those of the next owner.
func (w *world) options() Options {
	w.epoch++
	o := Options{
		Place: Place{
			Objects: w.files, Form: object.Options{Format: object.Parquet, Pipeline: "shop"}, Once: &Once{},
			Scratch: w.t.TempDir(), Roll: time.Millisecond, CutAt: 250,
		},
		Pipeline: "shop", Table: table, Owner: fmt.Sprint("owner ", w.epoch), Life: 1, Epoch: w.epoch, Open: w.log.Archive,
		Now: func() change.Millis { return change.Millis(w.now.Load()) }, Retry: 10 * time.Millisecond, Facts: w.facts,
		Metrics: NewMetrics(nil), Logger: zap.NewNop(), Halt: w.halt, Clear: w.clear, FromStart: true,
		Letter: w.letter, Known: w.known,
	}
	w.mu.Lock()
	o.Halted = slices.Collect(maps.Keys(w.halts))
	w.mu.Unlock()
	if w.edit != nil {
		w.edit(&o)
	}
	return o
}

// end crashes the owner and waits until nothing of it runs.
func (r *run) end() {
	r.crash()
	<-r.done
	if head := r.Head(); head.End > 0 {
		r.w.known = head
	}
}

func (w *world) halt(_ context.Context, sink, code, _ string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.halts[sink] = code
	return nil
}

func (w *world) clear(_ context.Context, sink string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.halts, sink)
	return nil
}

func (w *world) letter(_ context.Context, e *transform.Event, _ []byte, code, _ string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.noRoom == nil {
		w.letters[e.ID()] = code
	}
	return w.noRoom
}

func (w *world) halted(sink string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.halts[sink]
}

func (w *world) refusing(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = err
}

// facts counts the deletions of an hour by themselves.
func (w *world) facts(hour layout.Hour) Facts {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := int64(0)
	for _, r := range w.records {
		if r.Class == transform.ClassTTL && layout.HourOf(r.Time()) == hour {
			n++
		}
	}
	return Facts{Counted: &n}
}

// deleted makes n deletions in an hour, of two shards by turns.
func (w *world) deleted(hour, n int) []ledger.Record {
	return w.deletedAs(ledger.Keep, transform.ClassTTL, hour, n)
}

func (w *world) deletedAs(v ledger.Verdict, class transform.EventClass, hour, n int) []ledger.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := len(w.records)
	at := (hour0 + layout.Hour(hour)).Time().Add(time.Minute)
	for range n {
		w.next++
		id := strconv.Itoa(w.next)
		w.records = append(w.records, ledger.Record{Verdict: v, Event: &transform.Event{
			Class: class, Source: "arn", Table: table, Subject: `{"pk":{"N":"` + id + `"}}`, Stream: "label",
			Shard: fmt.Sprint("shard-", w.next%2), Sequence: change.SequenceNumber(id), Version: change.Version(w.next),
			Created: change.MillisOf(at), Item: []byte(`{"pk":{"N":"` + id + `"},"v":{"S":"` + strings.Repeat(id, 20) + `"}}`),
		}})
	}
	w.now.Store(max(w.now.Load(), at.UnixMilli()))
	return w.records[from:len(w.records):len(w.records)]
}

// store stores records in batches, as often as it takes, unless the owner crashes.
func (r *run) store(records []ledger.Record) {
	r.w.t.Helper()
	for batch := range slices.Chunk(records, 3) {
		for {
			_, err := r.Store(r.dying, batch)
			if r.dying.Err() != nil {
				return
			}
			if err == nil {
				break
			}
			if !errors.Is(err, archive.ErrAway) {
				r.w.t.Fatal(err)
			}
		}
	}
}

// state folds the stream.
func (w *world) state() (*ledger.State, error) {
	j, err := w.log.Archive(w.t.Context())
	if err != nil {
		return nil, err
	}
	s, _, _, err := fold(w.t.Context(), j)
	return s, err
}

// until waits for a state of the stream.
func (w *world) until(what string, ok func(*ledger.State) bool) *ledger.State {
	w.t.Helper()
	last, deadline := uint64(0), time.Now().Add(patient)
	for {
		s, err := w.state()
		if err == nil && ok(s) {
			return s
		}
		if err == nil && s.Seq != last {
			last, deadline = s.Seq, time.Now().Add(patient)
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not seen: %s; the stream: %+v, %v; halts %v", what, s, err, w.halts)
		}
		_ = failure.Pause(w.t.Context(), 5*time.Millisecond)
	}
}

// await waits for something beside the stream.
func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patient); !ok(); {
		if time.Now().After(deadline) {
			w.t.Fatalf("not seen: %s", what)
		}
		_ = failure.Pause(w.t.Context(), 5*time.Millisecond)
	}
}

// isOver returns whether a channel is closed, as await asks.
func isOver(c <-chan struct{}) func() bool {
	return func() bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
}

// patient is how long nothing may change while something is waited for.
const patient = 2 * time.Minute

// over lets all hours be over up to one.
func (r *run) over(hour int) {
	through := (hour0 + layout.Hour(hour)).End().Add(lateClose)
	r.w.now.Store(max(r.w.now.Load(), through.UnixMilli()))
	r.Passed(change.MillisOf(through))
}

// closed lets all hours be over up to one, and waits until they are closed and everything is in a
// manifest.
func (r *run) closed(hour int) *ledger.State {
	r.w.t.Helper()
	r.over(hour)
	return r.w.until(fmt.Sprint("hour ", hour, " is closed"), func(s *ledger.State) bool {
		return s.Closed > hour0+layout.Hour(hour) && len(s.Parts)+len(s.Intents) == 0
	})
}

// names returns what the bucket holds of the table.
func (w *world) names() (objects, manifests []string) {
	w.t.Helper()
	for x, err := range w.files.List(w.t.Context(), "") {
		if err != nil {
			w.t.Fatal(err)
		}
		if _, ok := layout.ParseObject(x.Name); ok {
			objects = append(objects, x.Name)
		} else if _, ok := layout.ParseManifest(table, x.Name); ok {
			manifests = append(manifests, x.Name)
		}
	}
	return objects, manifests
}

// check compares the objects with what was deleted: each event is in one object, once; and lets the
// archive verify itself. It returns the findings by which something is unproven.
func (w *world) check(s *ledger.State) []manifest.Kind {
	w.t.Helper()
	want, got := map[string]int{}, map[string]int{}
	for _, r := range w.records {
		if r.Verdict == ledger.Keep || r.Verdict == ledger.Late {
			want[r.ID()] = 1
		}
	}
	objects, _ := w.names()
	for _, name := range objects {
		for _, e := range w.read(name) {
			got[e.ID()]++
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("events in objects (-want +got):\n%s", diff)
	}
	rep, err := manifest.Verify(w.t.Context(), w.files, table, manifest.Options{
		Head: &s.Head, Depth: manifest.Full, Read: content,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range rep.Findings {
		if f.Grade == manifest.Different {
			w.t.Errorf("archive verify: %s: %s", f.Kind, f.Text)
		}
	}
	return rep.Kinds()
}

// proven is check where nothing may be left unproven.
func (w *world) proven(s *ledger.State) {
	w.t.Helper()
	if kinds := w.check(s); len(kinds) > 0 {
		w.t.Errorf("archive verify: %v", kinds)
	}
}

func (w *world) read(name string) (events []*transform.Event) {
	w.t.Helper()
	r, err := w.files.Open(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	for e, err := range object.Read(r, r.Size()) {
		if err != nil {
			w.t.Fatal(err)
		}
		events = append(events, &transform.Event{Stream: e.Stream, Shard: e.Shard, Sequence: e.Sequence})
	}
	return events
}

func content(_ context.Context, r io.ReaderAt, size int64, all bool) (*manifest.Content, error) {
	foot, err := object.ReadFooter(r, size)
	if err == nil && all {
		var problems []string
		if foot, problems, err = object.Verify(r, size); err == nil && len(problems) > 0 {
			err = errors.New(strings.Join(problems, "; "))
		}
	}
	if err != nil {
		return nil, err
	}
	return &manifest.Content{Part: foot.Part, Coverage: foot.Coverage, Events: foot.Events, Digest: foot.Digest}, nil
}

// writer appends behind what is stored, as an owner does that ends right after it.
func (w *world) writer() *writer {
	w.t.Helper()
	j := w.journal()
	s, end, info, err := fold(w.t.Context(), j)
	if err != nil {
		w.t.Fatal(err)
	}
	return newWriter(j, s, end, info)
}

func (w *world) journal() *journal.Journal {
	w.t.Helper()
	j, err := w.log.Archive(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// loseStream deletes the archive's stream.
func (w *world) loseStream() {
	w.t.Helper()
	kept, err := w.q.Kept(w.t.Context(), w.log.Table())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, k := range kept {
		if k.What == "archive" {
			if err := w.q.Delete(w.t.Context(), k); err != nil {
				w.t.Fatal(err)
			}
			return
		}
	}
	w.t.Fatal("the archive has no stream")
}

// noise returns a typed item of some size that does not compress.
func noise(size int) []byte {
	b := make([]byte, size/2)
	_, _ = rand.Read(b)
	return fmt.Appendf(nil, `{"v":{"S":"%x"}}`, b)
}

func partOf(e *transform.Event) layout.Part {
	return layout.Part{Table: e.Table, Class: e.Class, Hour: layout.HourOf(e.Time())}
}

func coverageOf(e *transform.Event) coverage.Set {
	c := coverage.Set{}
	c.Add(coverage.Key(e.Stream, e.Shard), coverage.Interval{
		From: coverage.Before(e.Sequence), To: e.Sequence, First: true,
	})
	return c
}
