package resync

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/source"
)

// slow is a table whose items are read within a budget, and a Bigtable that takes a row at a time.
type slow struct {
	absent
	read  atomic.Int64
	turn  chan struct{}
	write time.Duration // of one row
}

func (s *slow) ReadItems(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error) {
	s.read.Add(int64(len(keys)))
	b, err := s.absent.ReadItems(ctx, table, keys)
	b.Units = float64(len(keys))
	return b, err
}

func (s *slow) Resync(ctx context.Context, r *apply.ResyncItem) (apply.ResyncOutcome, error) {
	ctx, cancel := apply.WhileFresh(ctx, r.ReadAt)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return apply.ResyncOutcome{}, context.Cause(ctx)
	}
	if err := failure.Pause(ctx, s.write); err != nil {
		return apply.ResyncOutcome{}, err
	}
	return apply.ResyncOutcome{Written: 1}, nil
}

// readsOf serves requests and returns how many items were read per requested item.
func readsOf(t *testing.T, chunks, items int, units float64, write time.Duration) (reads float64) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 0, 0)
		o := x.options()
		s := &slow{absent: absent{x}, turn: make(chan struct{}, 1), write: write}
		o.Reader, o.Writer = s, s
		if units > 0 {
			o.Budget = source.NewBudget(units)
		}
		r := &Requests{Options: o, hand: newItemHand()}
		took := serveUntil(t, r, ask(chunks, items))
		reads = float64(s.read.Load()) / float64(chunks*items)
		t.Logf("%d requests for %d items each, %g units/s, a row in %s: %s, %.1f reads of an item",
			chunks, items, units, write, took, reads)
	})
	return reads
}

// TestSlowReadingIsNotRepeated: what is in hand grows too old while the rest is read.
func TestSlowReadingIsNotRepeated(t *testing.T) {
	for _, chunks := range []int{1, 16} {
		if n := readsOf(t, chunks, 2000, 20, 0); n > 1.1 {
			t.Errorf("%d requests: each item is read %.1f times", chunks, n)
		}
	}
	if n := readsOf(t, 16, 150, 2, 0); n > 1.1 {
		t.Errorf("a read takes most of a minute: each item is read %.1f times", n)
	}
}

// TestSlowBigtableDoesNotRepeatReading: what is in hand grows too old while the rest is written.
func TestSlowBigtableDoesNotRepeatReading(t *testing.T) {
	for _, chunks := range []int{1, 16} {
		if n := readsOf(t, chunks, 2000, 0, 50*time.Millisecond); n > 2 {
			t.Errorf("%d requests: each item is read %.1f times", chunks, n)
		}
	}
}
