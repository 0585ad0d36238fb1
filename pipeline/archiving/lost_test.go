package archiving

import (
	"os"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
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

// TestStreamIsLostAfterItsRecords: those of earlier hours are not read again, so that their numbers are not known.
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

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
