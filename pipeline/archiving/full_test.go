package archiving

import (
	"errors"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestFullStreamHoldsOrLetsEventsGo: with hold the table waits, and all of it flows when the bucket
// is back.
func TestFullStreamHoldsOrLetsEventsGo(t *testing.T) {
	for name, letters := range map[string]bool{"hold": false, "dead letters": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.files.hook(func(string) error { return bucket.ErrNotFound }, nil)
			w.edit = func(o *Options) { o.Letters, o.CutAt = letters, 1<<20 }
			r := w.start()
			var err error
			var records []ledger.Record
			w.await("the stream is full", func() bool {
				if err == nil {
					records = w.deleted(0, 2)
					for i := range records {
						records[i].Item = noise(40 << 10)
					}
				}
				_, err = r.Store(t.Context(), records)
				info, infoErr := w.journal().Info(t.Context()) // the archive's own figure is an estimate between two looks
				return err != nil && infoErr == nil && info.Fraction() >= holdAt
			})
			for i := range records {
				if letters {
					records[i].Verdict = ledger.Letter
				}
			}
			if n, err := r.Store(t.Context(), w.records[:2]); err != nil || n != 2 {
				t.Errorf("a full stream has %d of its first 2 records: %v", n, err)
			}
			if letters { // there is room for what says that they are
				if _, err := r.Store(t.Context(), records); err != nil {
					t.Fatal(err)
				}
			}
			if want := map[bool]error{false: archive.ErrAway, true: ErrStalled}[letters]; !errors.Is(err, want) {
				t.Fatalf("full: %v, want %v", err, want)
			}
			if s := r.Status(); !s.Stalled || s.OnStall != onStall(letters) {
				t.Errorf("full: stalled %v, on stall %q", s.Stalled, s.OnStall)
			}
			w.files.hook(nil, nil)
			wr := w.writer()
			w.await("the stream is trimmed", func() bool {
				info, err := wr.journal.Info(t.Context())
				return err == nil && info.Fraction() < holdAt/2
			})
			w.await("the status says that there is room", func() bool { return !r.Status().Stalled })
			r.store(records)
			r.store(w.deleted(1, 5))
			w.proven(r.closed(1))
		})
	}
}

// TestStreamWithLowLimitIsCutEarly: it would be full before an object has its size.
func TestStreamWithLowLimitIsCutEarly(t *testing.T) {
	w := newWorld(t)
	w.edit = func(o *Options) { o.Roll, o.CutAt = time.Hour, 96<<20 }
	r := w.start()
	for range 10 {
		records := w.deleted(0, 1)
		records[0].Item = noise(40 << 10)
		r.store(records)
	}
	w.until("an object", func(s *ledger.State) bool { return len(s.Objects) > 0 })
	w.proven(r.closed(0))
}

// TestFullToTheLastByteGoesOn: events are refused, and what lets the stream be trimmed is not.
func TestFullToTheLastByteGoesOn(t *testing.T) {
	w := newWorld(t)
	w.files.hook(func(string) error { return bucket.ErrNotFound }, nil)
	w.edit = func(o *Options) { o.CutAt = 1 << 20 }
	r := w.start()
	l := <-r.ready
	var err error
	var records []ledger.Record
	for size := 100 << 10; size > 0; size /= 10 { // past what is kept free, which Store does not fill
		for err = nil; err == nil; {
			records = w.deleted(0, 1)
			records[0].Item = noise(size)
			_, err = l.store(t.Context(), records)
		}
	}
	if !errors.Is(err, archive.ErrAway) {
		t.Fatalf("full: %v", err)
	}
	last := w.deletedAs(ledger.Letter, transform.ClassTTL, 0, 1)
	for range 50 { // without room for them the mark of the table's log would stand
		if _, err := l.store(t.Context(), last); err != nil {
			t.Fatalf("what says that an event is a dead letter: %v", err)
		}
		last = w.deletedAs(ledger.Letter, transform.ClassTTL, 0, 1)
	}
	w.files.hook(nil, nil)
	w.await("the stream is trimmed", func() bool {
		info, err := l.w.journal.Info(t.Context())
		return err == nil && info.Fraction() < holdAt/2
	})
}
