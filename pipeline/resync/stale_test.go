package resync

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// TestCopyThatMayWriteFewRowsEnds: what is in hand is written before it is too old, or the copy
// would read the same pages again and again.
func TestCopyThatMayWriteFewRowsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 600)
		x.pageSize = 500
		o := x.options()
		o.WriteRows = 5
		w := &manyRows{table: x} // three for an item
		o.Writer = w
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		if err := New(o, x.state()).Run(ctx); err != nil {
			t.Fatal(err)
		}
		x.complete()
		reads := 0
		for _, n := range x.reads {
			reads += n
		}
		if reads > 2*8*600/4 { // pages of four items
			t.Errorf("%d reads in %s: pages were read again and again", reads, w.last.Sub(w.begin))
		}
	})
}

// TestCopyToASlowBigtableEnds: without a limit of rows the rate is measured, or all pages in hand
// would be written in turns, become too old together and be read again for ever.
func TestCopyToASlowBigtableEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 600)
		x.pageSize = 500
		o := x.options()
		w := &crawling{table: x, turn: make(chan struct{}, 1)}
		o.Writer = w
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		if err := New(o, x.state()).Run(ctx); err != nil {
			t.Fatal(err)
		}
		x.complete()
		if w.items > 2*8*600 {
			t.Errorf("%d items were written for %d", w.items, 8*600)
		}
	})
}

// crawling writes ten items a second, one at a time.
type crawling struct {
	*table
	turn  chan struct{}
	items int
}

func (w *crawling) Resync(ctx context.Context, r *apply.ResyncItem) (apply.ResyncOutcome, error) {
	select {
	case <-ctx.Done():
		return apply.ResyncOutcome{}, context.Cause(ctx)
	case w.turn <- struct{}{}:
	}
	defer func() { <-w.turn }()
	if err := failure.Pause(ctx, 100*time.Millisecond); err != nil {
		return apply.ResyncOutcome{}, err
	}
	w.items++
	return w.table.Resync(ctx, r)
}

// TestIdleReadersLeaveTheMemoryToOtherTables: the last pages wait for the stream, and nothing is
// left to read.
func TestIdleReadersLeaveTheMemoryToOtherTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 5)
		o := x.options()
		o.Memory = NewMemory(2 * pageRoom)
		proven := make(chan struct{})
		x.prove = func(context.Context, change.Millis) error { <-proven; return nil }
		ended := make(chan error, 1)
		go func() { ended <- New(o, x.state()).Run(t.Context()) }()
		_ = failure.Pause(t.Context(), time.Minute) // everything is read
		if !o.Memory.room.TryAcquire(pageRoom) {
			t.Error("no other table may read a page")
		} else {
			o.Memory.cancel()
		}
		close(proven)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		x.complete()
	})
}

// TestCopyThatCannotProveLeavesTheMemoryToOtherTables: its stream stands before a gap until an
// operator accepts it.
func TestCopyThatCannotProveLeavesTheMemoryToOtherTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 40)
		o := x.options()
		o.Memory = NewMemory(2 * pageRoom)
		began, accepted := time.Now(), make(chan struct{})
		o.behind(func() time.Duration {
			select {
			case <-accepted:
				return 0
			default:
				return time.Since(began)
			}
		})
		x.prove = func(ctx context.Context, _ change.Millis) error {
			select {
			case <-accepted:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- New(o, x.state()).Run(t.Context()) }()
		_ = failure.Pause(t.Context(), 10*time.Minute)
		if !o.Memory.room.TryAcquire(2 * pageRoom) {
			t.Error("no other table may read a page")
		} else {
			o.Memory.room.Release(2 * pageRoom)
		}
		close(accepted)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		x.complete()
	})
}

// TestPageFromBeforeTheEndOfAGapIsNotWritten: it may hold what was deleted in the gap, and the
// resync that heals the gap may have passed the row already.
func TestPageFromBeforeTheEndOfAGapIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 40)
		var mu sync.Mutex
		var gap change.Millis
		o := x.options()
		began := time.Now()
		o.gap(func() change.Millis {
			mu.Lock()
			defer mu.Unlock()
			if gap == 0 && time.Since(began) > 3*time.Second { // found while the first pages wait for the proof
				gap = now()
			}
			return gap
		})
		x.answer = func(r *apply.ResyncItem) (apply.ResyncOutcome, error) {
			if end := o.GapsUntil(); r.Requested <= end {
				t.Errorf("written: an item read at %d, the gap ends at %d", r.Requested, end)
			}
			return apply.ResyncOutcome{}, nil
		}
		if err := New(o, x.state()).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.complete()
	})
}

// TestWholeResyncBeginsAboveWhatWasLost: what it reads is newer than everything that was lost, and
// so are the versions that it writes, except in a new life, whose floor lies ahead of the time.
func TestWholeResyncBeginsAboveWhatWasLost(t *testing.T) {
	const asked, above, gapsEnd change.Millis = 1_000_000, 2_000_000, 3_000_000
	for name, c := range map[string]struct {
		pending checkpoint.PendingResync
		gapsEnd change.Millis
		want    change.Millis
	}{
		"asked for": {checkpoint.PendingResync{Asked: asked}, 0, asked},
		"versions given out": {
			checkpoint.PendingResync{Asked: asked, Above: change.Version(above)}, 0, above + apply.ResyncMargin,
		},
		"a gap ends later": {
			checkpoint.PendingResync{Asked: asked, Above: change.Version(above)}, gapsEnd, gapsEnd + apply.ResyncMargin,
		},
		"heals a gap": {
			checkpoint.PendingResync{Asked: asked, Gaps: []string{"g"}}, asked - 1, asked + 125_000,
		},
		"heals a gap that ends later": {
			checkpoint.PendingResync{Asked: asked, Gaps: []string{"g"}}, gapsEnd, gapsEnd + 125_000,
		},
		"a new life": {
			checkpoint.PendingResync{Asked: asked, Above: change.Version(above), Recover: true}, 0, asked + 125_000,
		},
		"a new life with a gap": {
			checkpoint.PendingResync{Asked: asked, Above: change.Version(above), Recover: true, Gaps: []string{"g"}},
			0, above + apply.ResyncMargin,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Whole{Options: Options{Life: &life.Life{}}}
			w.gap(func() change.Millis { return c.gapsEnd })
			if got := beginOf(w, &c.pending); got != c.want+1500 {
				t.Errorf("begins at %d, want %d", got, c.want+1500)
			}
		})
	}
}

// beginOf returns the time of the service from which on the table may be read.
func beginOf(w *Whole, p *checkpoint.PendingResync) change.Millis {
	from, _ := protocol.ResyncFrom(p, w.Facts().RowFacts)
	return from
}

// TestNoPageIsReadBeforeTheResyncMayBegin: what it read before would be older than what was lost,
// and its repairs would have versions that rows hold already.
func TestNoPageIsReadBeforeTheResyncMayBegin(t *testing.T) {
	key := change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}
	program, problems := transform.Compile(transform.Table{Pipeline: "p", Source: "S", Target: "t", Schema: key,
		View: "NEW_AND_OLD_IMAGES"})
	if program == nil {
		t.Fatal(problems)
	}
	scratch := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 20)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		p := &checkpoint.PendingResync{ID: "r", Asked: now(), Above: change.Version(now() + 30_000), Gaps: []string{"g"}}
		o := x.options()
		o.Budget = source.NewBudget(1000)
		o.Target, o.Facts = "t", func() *life.Facts {
			return &life.Facts{Resync: p, RowFacts: protocol.RowFacts{GapsUntil: p.Asked - 1000}}
		}
		w := &Whole{Options: o, Program: program, Scratch: scratch}
		var once sync.Once
		first := change.Millis(0) // when a page is read
		x.fail = func(source.ScanRequest, int) error {
			once.Do(func() { first = now() })
			stop()
			return context.Cause(ctx)
		}
		if err := w.run(ctx, p); err == nil {
			t.Error("it ends without a page")
		}
		if begin := beginOf(w, p); first < begin || first > begin+5000 {
			t.Errorf("the first page is read at %d, %d ms behind the begin", first, first-begin)
		}
	})
}

// TestNoPageIsReadBeforeTheCopyMayBegin: what was written between the reading and the first start
// of the stream would be in neither.
func TestNoPageIsReadBeforeTheCopyMayBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 20)
		x.clockBack = 20_000
		c := x.state()
		c.Began = now() + 10_000
		x.fail = func(source.ScanRequest, int) error {
			if now() < c.Began {
				t.Errorf("read %d ms before the copy begins", c.Began-now())
			}
			return nil
		}
		x.answer = func(r *apply.ResyncItem) (apply.ResyncOutcome, error) {
			if r.Requested < c.Began {
				t.Errorf("written: an item that was read %d ms before the copy begins", c.Began-r.Requested)
			}
			return apply.ResyncOutcome{}, nil
		}
		if err := New(x.options(), c).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.complete()
	})
}

// TestOnlyABackfillIntoANewTargetTakesRowsForEmpty: everywhere else a row without a guard of the
// item may hold the item.
func TestOnlyABackfillIntoANewTargetTakesRowsForEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, why := range []string{checkpoint.CopyBackfill, checkpoint.CopyMapping} {
			for _, floor := range []change.Version{0, 1000} {
				x := newTable(t, 8, 3)
				o, c := x.options(), x.state()
				o.Floor, c.Why = floor, why
				want := why == checkpoint.CopyBackfill && floor == 0
				x.answer = func(r *apply.ResyncItem) (apply.ResyncOutcome, error) {
					if r.First != want {
						t.Errorf("copy for %s, floor %d: First %t", why, floor, r.First)
					}
					return apply.ResyncOutcome{}, nil
				}
				if err := New(o, c).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				x.complete()
			}
		}
	})
}

// TestItemThatWouldBeWrittenTooLateIsReadAgain: the limiter says so before the time is over, with
// an error of its own.
func TestItemThatWouldBeWrittenTooLateIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWritePace(0.001, nil)
		if err := p.Begin(t.Context()); err != nil { // takes what there is
			t.Fatal(err)
		}
		ctx, cancel := apply.WhileFresh(t.Context(), time.Now())
		defer cancel()
		if err := p.Begin(ctx); !errors.Is(err, apply.ErrStale) {
			t.Errorf("%v, want %v", err, apply.ErrStale)
		}
	})
}

// TestItemWhoseGuardWasReplacedIsReadAgain: a change that came behind the reading may have lost to
// the guard in the future that is gone now.
func TestItemWhoseGuardWasReplacedIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1, 1)
		o, writes := x.options(), 0
		o.Reader = oneItem{x}
		x.answer = func(*apply.ResyncItem) (apply.ResyncOutcome, error) { writes++; return apply.ResyncOutcome{}, nil }
		o.Writer = replacing{x}
		if _, err := NewItems(o).Resync(t.Context(), []Wanted{{Key: []byte(keyOf("a"))}}); err != nil || writes != 2 {
			t.Errorf("read and written %d times, not twice: %v", writes, err)
		}
	})
}

// TestResyncGoesOnWithWhatIsLeft: after an error only the items that were not written are read and
// written again, and the outcomes of the others are kept.
func TestResyncGoesOnWithWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 1, 1)
		o, writes, failing := x.options(), map[string]int{}, errors.New("no leader")
		o.Reader = itemsOf{x}
		x.answer = func(r *apply.ResyncItem) (apply.ResyncOutcome, error) {
			key := string(r.Keys)
			if writes[key]++; key == keyOf("b") && writes[key] == 1 {
				return apply.ResyncOutcome{}, failing
			}
			return apply.ResyncOutcome{Written: 1}, nil
		}
		items, list := NewItems(o), []Wanted{{Key: []byte(keyOf("a"))}, {Key: []byte(keyOf("b"))}, {Key: []byte(keyOf("c"))}}
		if _, err := items.Resync(t.Context(), list); !errors.Is(err, failing) {
			t.Fatal(err)
		}
		before := maps.Clone(writes)
		out, err := items.Resync(t.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range out {
			if o.Written != 1 {
				t.Errorf("item %d: %+v", i, o)
			}
		}
		for _, id := range []string{"a", "b", "c"} {
			want := before[keyOf(id)]
			if id == "b" || want == 0 {
				want++
			}
			if got := writes[keyOf(id)]; got != want {
				t.Errorf("%s is written %d times, want %d", id, got, want)
			}
		}
		if writes[keyOf("a")] != 1 {
			t.Errorf("%v: want a written once", writes)
		}
	})
}

// TestResyncThatCannotBeProvedHoldsNoRoom: else requests would wait for ever after a few such
// errors.
func TestResyncThatCannotBeProvedHoldsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, failing := newTable(t, 1, 1), errors.New("no proof")
		x.prove = func(context.Context, change.Millis) error { return failing }
		o := x.options()
		o.Reader = itemsOf{x}
		items := NewItems(o)
		if _, err := items.Resync(t.Context(), []Wanted{{Key: []byte(keyOf("a"))}}); !errors.Is(err, failing) {
			t.Fatal(err)
		}
		if n, bytes := items.hand.InHand(); n != 0 || bytes != 0 {
			t.Errorf("%d items and %d bytes are in hand", n, bytes)
		}
	})
}

// itemsOf is a table that has every item that is asked for.
type itemsOf struct{ *table }

func (itemsOf) ReadItems(_ context.Context, _ string, keys [][]byte) (*source.ItemBatch, error) {
	b := &source.ItemBatch{Requested: now(), Answered: now(), At: time.Now()}
	for range keys {
		b.Items = append(b.Items, []byte(`{"pk":{"S":"a"}}`))
	}
	return b, nil
}

// oneItem is a table with one item.
type oneItem struct{ *table }

func (oneItem) ReadItems(context.Context, string, [][]byte) (*source.ItemBatch, error) {
	item := []byte(`{"pk":{"S":"a"}}`)
	return &source.ItemBatch{Items: [][]byte{item}, Requested: now(), Answered: now(), At: time.Now()}, nil
}

// replacing replaces the guard of an item when it is written first.
type replacing struct{ *table }

func (w replacing) Resync(ctx context.Context, r *apply.ResyncItem) (apply.ResyncOutcome, error) {
	first := len(w.written) == 0
	out, err := w.table.Resync(ctx, r)
	out.Replaced = first
	return out, err
}
