package archiving

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestStreamIsLost: what the bucket has is not archived again, and the chain of manifests goes on.
func TestStreamIsLost(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	first := w.deleted(0, 12)
	r.store(first)
	r.closed(0)
	second := w.deleted(1, 12)
	r.store(second)
	w.until("objects of an open hour", func(s *ledger.State) bool { return len(s.Objects) > 0 && len(s.Parts) == 0 })
	r.end()
	w.loseStream()
	later := w.deleted(3, 6)
	r = w.start()
	r.store(slices.Concat(first, second, later)) // the table's log is recovered: records are read again
	s := r.closed(3)
	if s.Head.N < 2 {
		t.Errorf("the chain ends with %d", s.Head.N)
	}
	w.check(s)
}

// TestStreamIsLostAfterItsRecords: those of earlier hours are not read again, so that their numbers
// are not known.
func TestStreamIsLostAfterItsRecords(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	first := w.deleted(0, 12)
	r.store(first)
	r.closed(0)
	second := w.deleted(1, 12)
	r.store(second)
	w.until("objects of an open hour", func(s *ledger.State) bool { return len(s.Objects) > 0 && len(s.Parts) == 0 })
	r.end()
	w.loseStream()
	r = w.start()
	r.store(slices.Concat(second[6:], w.deleted(3, 6)))
	if kinds := w.check(r.closed(3)); !slices.Contains(kinds, manifest.HourIncomplete) {
		t.Errorf("archive verify: %v, but nobody knows what the stream held", kinds)
	}
}

// TestStreamIsLostBeforeItsFirstObject: only the table's log knows that there was one.
func TestStreamIsLostBeforeItsFirstObject(t *testing.T) {
	for name, objects := range map[string]bool{"nothing is archived": false, "hours are closed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.start()
			w.claimed()
			if objects {
				r.store(w.deleted(0, 6))
				r.closed(0)
			}
			r.end()
			w.edit = func(o *Options) { o.Roll, o.CutAt = time.Hour, 1<<20 }
			r = w.start()
			before := w.seen()
			r.store(w.deleted(1, 6))
			r.end()
			w.forget(before) // they were in the stream alone
			w.loseStream()
			w.edit = nil
			w.deleted(3, 0)
			r = w.start()
			w.claimed()
			if objects { // else the next owner finds them, and a loss of its own
				w.until("the manifest is adopted", func(s *ledger.State) bool { return s.Head.N > 0 })
			}
			known := w.known
			r.end()
			w.known = known // the log had no marks since
			r = w.start()   // it names the loss once
			r.store(w.deleted(3, 6))
			s := r.closed(4)
			lacks := func(l ledger.Lost) bool { return strings.Contains(l.Why, "lacks entries") }
			id := ledger.StreamLost(w.epoch - 1)
			if len(s.Lost) == 0 || slices.ContainsFunc(s.Lost[1:], lacks) || s.Lost[0].ID != id || s.Whole {
				t.Fatalf("lost: %+v, whole %v", s.Lost, s.Whole)
			}
			w.await("the status says so", func() bool { return slices.Contains(r.Status().Lost, s.Lost[0].ID) })
			want := map[layout.Hour]bool{hour0 + 1: true, hour0 + 2: true, hour0 + 3: true, hour0 + 4: false}
			if objects {
				want[hour0] = false
			} else {
				want[hour0] = true
			}
			if diff := cmp.Diff(want, w.incomplete(s.Lost[0].ID)); diff != "" {
				t.Errorf("hours that are incomplete (-want +got):\n%s", diff)
			}
			if kinds := w.check(s); !slices.Contains(kinds, manifest.HourIncomplete) {
				t.Errorf("archive verify: %v", kinds)
			}
		})
	}
}

// TestStreamLostItsEnd: the table's log knows an entry behind its last.
func TestStreamLostItsEnd(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	r.store(w.deleted(0, 6))
	r.end()
	w.known.End += 7
	r = w.start()
	w.claimed()
	r.store(w.deleted(1, 6))
	s := r.closed(1)
	if len(s.Lost) != 1 {
		t.Errorf("lost: %+v", s.Lost)
	}
	want := map[layout.Hour]bool{hour0: true, hour0 + 1: false}
	if diff := cmp.Diff(want, w.incomplete(ledger.StreamLost(w.epoch))); diff != "" {
		t.Errorf("hours that are incomplete (-want +got):\n%s", diff)
	}
	w.check(s)
}

// TestStreamIsLostWithTheLog: the recovered log knows nothing, but that there was one before it.
func TestStreamIsLostWithTheLog(t *testing.T) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.FromStart, o.Recovered, o.Life = false, true, 2 }
	r := w.start()
	r.store(w.deleted(1, 6))
	s := r.closed(2)
	if len(s.Lost) != 1 || !w.incomplete(s.Lost[0].ID)[hour0-24] || !w.incomplete(s.Lost[0].ID)[hour0] {
		t.Errorf("lost: %+v; %v", s.Lost, w.incomplete(s.Lost[0].ID))
	}
	w.check(s)
	r.end()
	w.start()
	w.claimed()
	if s, err := w.state(); err != nil || len(s.Lost) != 1 {
		t.Errorf("lost again: %+v, %v", s, err)
	}
}

// claimed waits until the newest owner has the stream.
func (w *world) claimed() {
	w.t.Helper()
	w.until("the claim", func(s *ledger.State) bool { return s.Claim.Epoch == w.epoch })
}

func (w *world) seen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.records)
}

// forget leaves out the records from one on: nobody has them any more.
func (w *world) forget(from int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = w.records[:from]
}

// incomplete returns which closed hours are incomplete by a loss.
func (w *world) incomplete(id string) map[layout.Hour]bool {
	w.t.Helper()
	hours := map[layout.Hour]bool{}
	_, manifests := w.names()
	for _, name := range manifests {
		r, err := w.files.Open(w.t.Context(), name)
		must(w.t, err)
		text, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		must(w.t, err, r.Close())
		m, _, err := manifest.Decode(text)
		must(w.t, err)
		for _, h := range m.Hours {
			hours[h.Hour] = hours[h.Hour] || slices.Contains(h.Incomplete, id)
		}
	}
	return hours
}

// TestStreamGoesBack: the store is put back to an older copy, and what followed is read again.
func TestStreamGoesBack(t *testing.T) {
	for name, again := range map[string]func(before, after []ledger.Record) []ledger.Record{
		"and everything is read again": func(before, after []ledger.Record) []ledger.Record {
			return slices.Concat(before, after)
		},
		"and what followed is read again": func(_, after []ledger.Record) []ledger.Record { return after },
	} {
		t.Run(name, func(t *testing.T) {
			dir, older := t.TempDir(), t.TempDir()+"/older"
			w := newWorld(t)
			open := func() *queue.Queue {
				q, err := queue.Open(t.Context(), queueOptions(dir), zap.NewNop(), prometheus.NewRegistry())
				if err != nil {
					t.Fatal(err)
				}
				w.use(q, "Sessions")
				return q
			}
			q := open()
			r := w.start()
			before := w.deleted(0, 12)
			r.store(before)
			w.until("an object", func(s *ledger.State) bool { return len(s.Objects) > 0 })
			r.end()
			must(t, q.Close(), os.CopyFS(older, os.DirFS(dir)))

			q = open()
			r = w.start()
			after := slices.Concat(w.deleted(0, 6), w.deleted(1, 6))
			r.store(after)
			r.closed(1)
			r.end()
			must(t, q.Close(), os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(older)))

			q = open()
			r = w.start()
			r.store(slices.Concat(again(before, after), w.deleted(2, 6)))
			s := r.closed(2)
			w.check(s)
			r.end()
			must(t, q.Close())
		})
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPieceWithoutEventsIsPassedOver: adopted objects have all events of a part, but not what lies
// between them.
func TestPieceWithoutEventsIsPassedOver(t *testing.T) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.Roll, o.CutAt = time.Hour, 1<<20 }
	r := w.start()
	r.store(w.deleted(0, 2))
	r.store(w.deletedAs(ledger.Skip, transform.ClassTTL, 0, 2))
	r.store(w.deleted(0, 2))
	r.end()
	for n := range w.records {
		if e := w.records[n].Event; w.records[n].Verdict == ledger.Keep {
			must(t, w.putObject(partOf(e).Object(uint64(n), uint64(n), "0a1b2c3d", "parquet"), e))
		}
	}
	w.edit = nil
	r = w.start()
	w.check(r.closed(0))
	if objects, _ := w.names(); len(objects) != 4 {
		t.Errorf("objects: %v", objects)
	}
}

// TestStreamGoesBackByDays: what it still has is in objects since, which are older than all that
// can be read again.
func TestStreamGoesBackByDays(t *testing.T) {
	for name, closed := range map[string]bool{"in no manifest": false, "in a manifest": true} {
		t.Run(name, func(t *testing.T) {
			dir, older := t.TempDir(), t.TempDir()+"/older"
			w := newWorld(t)
			open := func() *queue.Queue {
				q, err := queue.Open(t.Context(), queueOptions(dir), zap.NewNop(), prometheus.NewRegistry())
				must(t, err)
				w.use(q, "Sessions")
				return q
			}
			q := open()
			w.edit = func(o *Options) { o.Roll, o.CutAt = time.Hour, 1<<20 }
			r := w.start()
			r.store(w.deleted(0, 6))
			r.end()
			must(t, q.Close(), os.CopyFS(older, os.DirFS(dir)))

			q = open()
			r = w.start()
			r.store(w.deleted(0, 6))
			r.end()
			w.edit = func(o *Options) { o.CutAt = 1 << 20 }
			r = w.start()
			w.until("objects", func(s *ledger.State) bool { return len(s.Objects) > 0 && len(s.Parts)+len(s.Intents) == 0 })
			if closed {
				r.closed(0)
			}
			r.end()
			must(t, q.Close(), os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(older)))

			q = open()
			later := w.deleted(100, 6)
			r = w.start()
			r.store(later)
			w.check(r.closed(100))
			r.end()
			must(t, q.Close())
		})
	}
}

// TestLogIsLostAlone: the archive's stream does not know what the log held behind its end. It is
// named once.
func TestLogIsLostAlone(t *testing.T) {
	w := newWorld(t)
	r := w.start()
	r.store(w.deleted(0, 6))
	r.closed(0)
	r.end()
	w.known = checkpoint.ArchiveHead{}
	w.edit = func(o *Options) { o.FromStart, o.Recovered, o.Life = false, true, 2 }
	w.deleted(2, 0)
	for range 2 { // an owner that comes before the first record
		r = w.start()
		w.claimed()
		r.end()
		w.known = checkpoint.ArchiveHead{}
	}
	r = w.start()
	r.store(w.deleted(3, 6))
	s := r.closed(3)
	id := ledger.LogLost(2)
	if len(s.Lost) != 1 || s.Lost[0].ID != id {
		t.Fatalf("lost: %+v", s.Lost)
	}
	want := map[layout.Hour]bool{hour0: false, hour0 + 1: true, hour0 + 2: true, hour0 + 3: false}
	if diff := cmp.Diff(want, w.incomplete(id)); diff != "" {
		t.Errorf("hours that are incomplete (-want +got):\n%s", diff)
	}
	w.check(s)
}
