package archiving

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestHoursInTheSameEntriesAreReadOnce: the objects of hours whose events came together are made of
// one reading, and are those that each hour would give on its own.
func TestHoursInTheSameEntriesAreReadOnce(t *testing.T) {
	for _, cutAt := range []int64{250, 1 << 20} { // some objects end before their hour, none
		t.Run(fmt.Sprint("cut at ", cutAt), func(t *testing.T) { readOnce(t, cutAt) })
	}
}

func readOnce(t *testing.T, cutAt int64) {
	const hours = 6
	w := newWorld(t)
	w.edit = func(o *Options) { o.CutAt = cutAt }
	l := w.life()
	for range 3 {
		for hour := range hours {
			w.deleted(hour, 2)
		}
		w.deletedAs(ledger.Keep, transform.ClassUser, 1, 1)
	}
	for n := 0; n < len(w.records); n += 5 {
		l.stored(t, w.records[n:min(n+5, len(w.records))])
	}
	l.a.Passed(change.MillisOf((hour0 + hours).Time().Add(lateClose)))
	pieces, _ := l.due(partTimes{}, time.Now())
	if pieces = together(pieces); len(pieces) != hours+1 {
		t.Fatalf("%d pieces are read together, not %d", len(pieces), hours+1)
	}
	all, err := l.gather(t.Context(), pieces)
	if err != nil {
		t.Fatal(err)
	}
	defer discard(all)
	for _, g := range all {
		alone, err := l.gather(t.Context(), []piece{g.piece})
		if err != nil {
			t.Fatal(err)
		}
		defer discard(alone)
		want, got := l.built(t, alone[0]), l.built(t, g)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("object of %v (-read alone +read together):\n%s", g.key, diff)
		}
		if g.key.Class == transform.ClassTTL && (got.Events == 0 || cutAt > 250 && got.Events != 6) {
			t.Errorf("object of %v: %d events", g.key, got.Events)
		}
	}
}

// TestTogether: pieces are read together while their entries adjoin and their blocks fit.
func TestTogether(t *testing.T) {
	at := func(hour int, first, last uint64, bytes int64) piece {
		key := ledger.PartKey{Class: transform.ClassTTL, Hour: hour0 + layout.Hour(hour)}
		return piece{key: key, first: first, last: last, bytes: bytes}
	}
	for _, test := range []struct {
		name   string
		pieces []piece
		want   int
	}{
		{"none", nil, 0},
		{"one that is larger than the limit", []piece{at(0, 1, 9, gatherMax+1)}, 1},
		{"the same entries", []piece{at(0, 1, 9, 10), at(1, 1, 9, 10), at(2, 3, 9, 10)}, 3},
		{"one after the other", []piece{at(1, 10, 20, 10), at(0, 1, 9, 10)}, 2},
		{"far from each other", []piece{at(0, 1, 9, 10), at(1, 11, 20, 10)}, 1},
		{"more than the limit", []piece{at(0, 1, 9, gatherMax/2), at(1, 1, 9, gatherMax/2), at(2, 1, 9, 1)}, 2},
	} {
		if got := together(test.pieces); len(got) != test.want {
			t.Errorf("%s: %d pieces, want %d", test.name, len(got), test.want)
		}
	}
}

// life claims the archive's stream, without what runs in a life.
func (w *world) life() *life {
	w.t.Helper()
	a := New(w.options())
	wr, err := a.claim(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return &life{a: a, w: wr}
}

func (l *life) stored(t *testing.T, records []ledger.Record) {
	t.Helper()
	if n, err := l.store(t.Context(), records); err != nil || n != len(records) {
		t.Fatalf("stored %d of %d records: %v", n, len(records), err)
	}
}

func (l *life) built(t *testing.T, g *gathered) ledger.Intent {
	t.Helper()
	b, err := l.build(l.a.o.Form, g)
	if err != nil {
		t.Fatal(err)
	}
	defer b.discard()
	return b.intent
}
