package resync

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/source"
)

// table is an old table in memory: the items of each segment in order, read pageSize at a time.
type table struct {
	t        *testing.T
	segments [][]string
	pageSize int
	units    float64

	mu      sync.Mutex
	reads   map[int]int // per segment
	open    int         // reads at once
	widest  int
	fail    func(r source.ScanRequest, n int) error
	marks   map[int]checkpoint.CopyMark
	bodies  []any
	written map[string]change.Version
	answer  func(r *apply.ResyncItem) (apply.ResyncOutcome, error)
	proven  change.Millis
	// clockBack is how far the service's clock is behind at the first reading of each segment.
	clockBack change.Millis
	prove     func(ctx context.Context, through change.Millis) error
}

func newTable(t *testing.T, segments, items int) *table {
	x := &table{
		t: t, pageSize: 7, units: 2, reads: map[int]int{}, marks: map[int]checkpoint.CopyMark{},
		written: map[string]change.Version{},
	}
	for s := range segments {
		var keys []string
		for i := range items {
			keys = append(keys, fmt.Sprintf("s%d-%04d", s, i))
		}
		x.segments = append(x.segments, keys)
	}
	return x
}

func (x *table) ScanPage(ctx context.Context, r source.ScanRequest) (*source.ItemPage, error) {
	x.mu.Lock()
	x.reads[r.Segment]++
	n := x.reads[r.Segment]
	x.open++
	x.widest = max(x.widest, x.open)
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		x.open--
		x.mu.Unlock()
	}()
	if r.Eventual {
		x.t.Error("a copy reads with eventual consistency")
	}
	pg := &source.ItemPage{Requested: now(), At: time.Now(), Units: x.units}
	if x.clockBack > 0 && n == 1 {
		pg.Requested -= x.clockBack
	}
	if err := failure.Pause(ctx, 10*time.Millisecond); err != nil {
		return nil, err
	}
	if x.fail != nil {
		if err := x.fail(r, n); err != nil {
			return nil, err
		}
	}
	keys := x.segments[r.Segment]
	for len(keys) > 0 && keyOf(keys[0]) <= r.After {
		keys = keys[1:]
	}
	size := x.pageSize
	if r.Limit > 0 {
		size = min(size, r.Limit)
	}
	for len(keys) > 0 && len(pg.Items) < size {
		pg.Items = append(pg.Items, []byte(`{"pk":{"S":"`+keys[0]+`"},"v":{"N":"1"}}`))
		pg.After = keyOf(keys[0])
		keys = keys[1:]
	}
	if pg.Answered = now(); len(keys) == 0 {
		pg.After, pg.Done = "", true
	}
	return pg, nil
}

func keyOf(pk string) string { return `{"pk":{"S":"` + pk + `"}}` }

func now() change.Millis { return change.MillisOf(time.Now()) }

func (x *table) ReadItems(context.Context, string, [][]byte) (*source.ItemBatch, error) {
	return nil, errors.New("not needed")
}

func (x *table) Backlog() (int, time.Duration) { return 0, 0 }

func (x *table) Resync(ctx context.Context, r *apply.ResyncItem) (apply.ResyncOutcome, error) {
	if err := failure.Pause(ctx, time.Millisecond); err != nil {
		return apply.ResyncOutcome{}, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.proven < r.Requested+answerMargin {
		x.t.Errorf("written before the stream was applied past the reading: proven %d, read at %d", x.proven, r.Requested)
	}
	if x.answer != nil {
		if out, err := x.answer(r); err != nil || out.Refused != nil {
			return out, err
		}
	}
	x.written[string(r.Keys)] = r.Version
	return apply.ResyncOutcome{Written: 1}, nil
}

// state returns the copy as the log would fold it.
func (x *table) state() *checkpoint.CopyState {
	c := &checkpoint.CopyState{Copy: checkpoint.Copy{
		ID: "backfill-1", Why: checkpoint.CopyBackfill, From: checkpoint.FromScan, Parts: len(x.segments),
	}}
	c.Marks = x.marks
	return c
}

func (x *table) append(ctx context.Context, body any) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bodies = append(x.bodies, body)
	m, ok := body.(*checkpoint.CopyMarks)
	if !ok {
		return nil
	}
	for i, mark := range m.Parts {
		if old := x.marks[i]; mark.Items < old.Items || old.Done {
			x.t.Errorf("mark of part %d goes back: %+v after %+v", i, mark, old)
		}
		for _, key := range x.segments[i] { // Rule 1
			if _, ok := x.written[keyOf(key)]; !ok && (mark.Done || keyOf(key) <= mark.After) && mark.Letters == 0 {
				x.t.Errorf("the mark of part %d passes %s, which is not durable", i, key)
			}
		}
		x.marks[i] = mark
	}
	return nil
}

func (x *table) options() Options {
	l := &life.Life{
		Source: "Orders", Info: source.TableInfo{Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}},
		Append: x.append, Now: now, Lead: func() time.Duration { return 0 }, Logger: zaptest.NewLogger(x.t),
		Facts:    func() *life.Facts { return &life.Facts{Applied: now()} },
		Unproven: func() string { return "" },
		Prove: func(ctx context.Context, through change.Millis) error {
			if x.prove != nil {
				if err := x.prove(ctx, through); err != nil {
					return err
				}
			}
			if err := failure.Pause(ctx, time.Duration(through-now())*time.Millisecond); err != nil {
				return err
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			x.proven = max(x.proven, through)
			return nil
		},
	}
	return Options{
		Life: l, Reader: x, Writer: x, Memory: NewMemory(4 << 20), Stats: NewMetrics(nil).Table("Orders"),
	}
}

// behind sets how far Bigtable is behind the stream.
func (o *Options) behind(f func() time.Duration) {
	o.Facts = func() *life.Facts { return &life.Facts{Applied: now() - change.Millis(f().Milliseconds())} }
}

// gap sets the end of the latest gap.
func (o *Options) gap(until func() change.Millis) {
	o.Facts = func() *life.Facts {
		return &life.Facts{Applied: now(), RowFacts: protocol.RowFacts{GapsUntil: until()}}
	}
}

// complete fails the test unless every item was written.
func (x *table) complete() {
	x.t.Helper()
	n := 0
	for i, keys := range x.segments {
		for _, key := range keys {
			if _, ok := x.written[keyOf(key)]; !ok {
				x.t.Errorf("segment %d: %s was not copied", i, key)
			}
			n++
		}
		if !x.marks[i].Done || x.marks[i].Items != int64(len(keys)) {
			x.t.Errorf("mark of segment %d: %+v", i, x.marks[i])
		}
	}
	if len(x.written) != n {
		x.t.Errorf("%d items written, not %d", len(x.written), n)
	}
}

// TestCopyGoesOnAfterEachKill: killed at any moment, a copy goes on from its marks, and no mark is
// ahead of what is durable.
func TestCopyGoesOnAfterEachKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 1))
		x := newTable(t, 20, 40)
		for lives := 1; ; lives++ {
			ctx, kill := context.WithTimeout(t.Context(), 3*time.Second+time.Duration(rnd.IntN(int(6*time.Second))))
			if err := New(x.options(), x.state()).Run(ctx); err != nil {
				t.Fatal(err)
			}
			killed := ctx.Err() != nil
			kill()
			if !killed {
				t.Logf("%d lives", lives)
				break
			}
			if lives > 200 {
				t.Fatal("the copy does not end")
			}
		}
		x.complete()
	})
}

// TestPageThatIsTooOldIsReadAgain: it may lack a delete that was lost since.
func TestPageThatIsTooOldIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 30)
		frozen := map[string]bool{}
		x.answer = func(r *apply.ResyncItem) (apply.ResyncOutcome, error) {
			if key := string(r.Keys); strings.Contains(key, "-0010") && !frozen[key] {
				frozen[key] = true
				return apply.ResyncOutcome{}, apply.ErrStale
			}
			return apply.ResyncOutcome{}, nil
		}
		if err := New(x.options(), x.state()).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.complete()
		if len(frozen) != 8 {
			t.Errorf("%d pages were too old, not 8", len(frozen))
		}
	})
}

// TestRefusalsPauseTheCopyAlone: a thousand refused items are dead letters, more of them mean that
// the mapping is wrong.
func TestRefusalsPauseTheCopyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 300)
		why := outcome.Outcome{Code: "row_key", Reason: "row key is empty"}
		x.answer = func(*apply.ResyncItem) (apply.ResyncOutcome, error) {
			return apply.ResyncOutcome{Refused: &why, Lettered: true}, nil
		}
		c := New(x.options(), x.state())
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var paused []string
		for _, b := range x.bodies {
			if m, ok := b.(*checkpoint.CopyMarks); ok && m.Paused != "" {
				paused = append(paused, m.Paused)
			}
		}
		want := "more than 1000 items are refused (row_key): row key is empty; go on with `replicator copy resume`"
		if d := cmp.Diff([]string{want}, paused); d != "" {
			t.Error(d)
		}
		if p := c.Progress(); p.Paused != want {
			t.Errorf("progress: %+v", p)
		}
	})
}

// TestCopyBesideRemovalsOfWholeRowsOrdersAResync: before the last mark, whoever stores that,
// because nothing would ask for it after a crash between the two.
func TestCopyBesideRemovalsOfWholeRowsOrdersAResync(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			x := newTable(t, 1, 5)
			o := x.options()
			o.WipesRows = true
			ctx, stop := context.WithCancel(t.Context())
			x.answer = func(r *apply.ResyncItem) (apply.ResyncOutcome, error) {
				if stopped {
					time.AfterFunc(5*time.Millisecond, stop) // all is written, and nobody has looked since
				}
				return apply.ResyncOutcome{}, nil
			}
			c := New(o, x.state())
			if err := errors.Join(c.Run(ctx), c.Save(t.Context())); err != nil {
				t.Fatal(err)
			}
			x.complete()
			stop()
			if m, ok := x.bodies[0].(*checkpoint.Control); !ok || m.Resync.ID != "after-backfill-1" {
				t.Errorf("stopped %t: the first entry is %+v", stopped, x.bodies[0])
			}
		})
	}
}

// TestPausingCopyEndsWithItsLife: the write loop has ended, and takes no entry any more.
func TestPausingCopyEndsWithItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 20)
		x.answer = func(*apply.ResyncItem) (apply.ResyncOutcome, error) {
			return apply.ResyncOutcome{Refused: &outcome.Outcome{Code: "row_key"}}, nil
		}
		o := x.options()
		o.Append = func(ctx context.Context, _ any) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		life, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		c := New(o, x.state())
		if err := c.Run(life); err != nil || life.Err() == nil {
			t.Errorf("ended before its life, or with %v", err)
		}
		c.o.Append = x.append // of the life's drain
		if err := c.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m, ok := x.bodies[0].(*checkpoint.CopyMarks); !ok || m.Paused == "" {
			t.Errorf("the reason of the pause is not stored: %+v", x.bodies)
		}
	})
}

// TestThrottledSegmentDoesNotHoldTheOthersUp: segments are visited in turn, and one in a hot
// partition waits alone.
func TestThrottledSegmentDoesNotHoldTheOthersUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 256, 14)
		throttled := &source.Error{Op: "scan", Class: 2, Err: errors.New("throughput exceeded")}
		began := time.Now()
		x.fail = func(r source.ScanRequest, _ int) error {
			if r.Segment == 17 && time.Since(began) < 40*time.Second {
				return throttled
			}
			return nil
		}
		var others time.Duration // when all segments but one were done
		o := x.options()
		inner := o.Append
		o.Append = func(ctx context.Context, body any) error {
			err := inner(ctx, body)
			x.mu.Lock()
			defer x.mu.Unlock()
			done := 0
			for _, m := range x.marks {
				if m.Done {
					done++
				}
			}
			if done == 255 && others == 0 {
				others = time.Since(began)
			}
			return err
		}
		if err := New(o, x.state()).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.complete()
		if others == 0 || others > 25*time.Second {
			t.Errorf("the other segments were done after %s", others)
		}
		if x.widest > maxReaders || x.reads[17] > 60 {
			t.Errorf("%d reads at once, %d of the throttled segment", x.widest, x.reads[17])
		}
	})
}

// TestNoPageIsReadWhileBigtableIsFarBehind: it would only wait in memory.
func TestNoPageIsReadWhileBigtableIsFarBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 8, 20)
		o := x.options()
		began := time.Now()
		o.behind(func() time.Duration { return max(0, 10*time.Minute-2*time.Since(began)) })
		var early atomic.Bool // several readers read at once
		x.fail = func(source.ScanRequest, int) error {
			if time.Since(began) < 4*time.Minute+29*time.Second {
				early.Store(true)
			}
			return nil
		}
		c := New(o, x.state())
		go func() {
			if failure.Pause(t.Context(), time.Minute) != nil {
				return
			}
			if p := c.Progress(); !strings.Contains(p.Waits, "Bigtable is 8m") {
				t.Errorf("waits: %q", p.Waits)
			}
		}()
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if x.complete(); early.Load() {
			t.Error("read while Bigtable was more than a minute behind")
		}
	})
}

// TestReadBudgetIsKept: the consumed capacity over a minute is the budget's.
func TestReadBudgetIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 64, 400)
		x.units = 30
		o := x.options()
		o.Budget = source.NewBudget(1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := New(o, x.state()).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if used := o.Budget.Usage().Used; used < 54_000 || used > 66_000 {
			t.Errorf("%.0f units in a minute, budget of 60000", used)
		}
	})
}
