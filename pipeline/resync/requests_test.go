package resync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/queue/request"
	"github.com/tailrace-cdc/replicator/source"
)

// absent reads items that do not exist.
type absent struct{ *table }

func (absent) ReadItems(_ context.Context, _ string, keys [][]byte) (*source.ItemBatch, error) {
	return &source.ItemBatch{Items: make([][]byte, len(keys)), Requested: now(), Answered: now(), At: time.Now()}, nil
}

// TestOutcomeOfManyItemsFitsIntoAMessage: a note for each of thousands of items might not, and an
// outcome that cannot be stored would keep its chunk before all others.
func TestOutcomeOfManyItemsFitsIntoAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 0, 0)
		o := x.options()
		o.Reader, o.Writer = absent{x}, hotRows{x}
		const n = 3 * maxNotes
		var items []request.Item
		for i := range n {
			items = append(items, request.Item{Key: json.RawMessage(fmt.Sprintf(`{"pk":{"S":"%d"}}`, i))})
		}
		w := &chunkWork{Chunk: &request.Chunk{What: request.Resync, Items: items}, items: NewItems(o)}
		out, err := (&Requests{Options: o}).do(t.Context(), w)
		if err != nil || out.Hot != n || len(out.Notes) != maxNotes {
			t.Fatalf("%d hot, %d notes, %v", out.Hot, len(out.Notes), err)
		}
	})
}

// hotRows takes nothing, because all items have just changed.
type hotRows struct{ *table }

func (hotRows) Resync(_ context.Context, r *apply.ResyncItem) (apply.ResyncOutcome, error) {
	return apply.ResyncOutcome{Skipped: 1, Hot: change.Millis(r.Version) + apply.ResyncMargin + 1}, nil
}

// memory holds requests as a stream does.
type memory struct {
	mu     sync.Mutex
	chunks []*request.Chunk
	after  uint64 // of the last look
}

func (m *memory) NextAfter(_ context.Context, _ time.Time, after uint64) (*request.Chunk, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.after = after
	for i := int(after); i < len(m.chunks); i++ {
		if m.chunks[i].Outcome == nil {
			return m.chunks[i], uint64(i) + 1, nil
		}
	}
	return nil, 0, nil
}

func (m *memory) Waiting(context.Context, *request.Chunk) ([]*request.Chunk, error) { return nil, nil }

func (m *memory) Finish(_ context.Context, c *request.Chunk, o *request.Outcome) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, x := range m.chunks {
		if x.ID == c.ID && x.Outcome == nil {
			done := *x
			done.Outcome = o
			m.chunks[i] = &done
			return nil
		}
	}
	return fmt.Errorf("chunk %s is done twice", c.ID)
}

// open returns the chunks without an outcome.
func (m *memory) open() (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.chunks {
		if c.Outcome == nil {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func ask(chunks, items int) *memory {
	m := &memory{}
	for c := range chunks {
		chunk := &request.Chunk{ID: fmt.Sprintf("c-%02d", c), What: request.Letters}
		for i := range items {
			chunk.Items = append(chunk.Items, request.Item{Key: json.RawMessage(fmt.Sprintf(`{"pk":{"S":"%d-%d"}}`, c, i))})
		}
		m.chunks = append(m.chunks, chunk)
	}
	return m
}

// large reads items of 100 KB, one batch at a time.
type large struct {
	absent
	hand     *itemHand
	reads    atomic.Int32
	most     atomic.Int64
	together atomic.Bool
}

func (l *large) ReadItems(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error) {
	if l.reads.Add(1) > 1 {
		l.together.Store(true)
	}
	defer l.reads.Add(-1)
	b, err := l.absent.ReadItems(ctx, table, keys)
	if err == nil {
		err = failure.Pause(ctx, 10*time.Millisecond)
	}
	for i := range b.Items {
		b.Items[i] = make([]byte, 100<<10)
	}
	_, inHand := l.hand.InHand()
	l.most.Store(max(l.most.Load(), int64(inHand)))
	return b, err
}

// writable is a Bigtable that takes every row but the first of some requests, as long as they are
// stuck.
type writable struct {
	*table
	stuck chan struct{} // closed when it takes the rows; nil: it always does
	of    int           // so many requests, and one at least
}

func (w writable) Resync(ctx context.Context, r *apply.ResyncItem) (apply.ResyncOutcome, error) {
	var chunk, item int
	_, _ = fmt.Sscanf(string(r.Keys), `{"pk":{"S":"%d-%d"}}`, &chunk, &item)
	if w.stuck != nil && item == 0 && chunk < max(w.of, 1) {
		select {
		case <-w.stuck:
		case <-ctx.Done():
			return apply.ResyncOutcome{}, context.Cause(ctx)
		}
	}
	return apply.ResyncOutcome{Written: 1}, nil
}

// serveUntil serves requests until none of them but some is open, and returns how long that took.
func serveUntil(t *testing.T, r *Requests, m *memory, but ...string) time.Duration {
	t.Helper()
	ctx, began := t.Context(), time.Now()
	for store := chunks(m); !slices.Equal(m.open(), but); {
		if _, err := r.serve(ctx, &store); err != nil {
			t.Fatal(err)
		}
		if err := failure.Pause(ctx, 100*time.Millisecond); err != nil || time.Since(began) > time.Hour {
			t.Fatalf("after an hour these are open: %v", m.open())
		}
	}
	return time.Since(began)
}

// TestWaitingRequestsShareTheirProof: each chunk waits some seconds until what was written before
// its reading is in Bigtable, and all that wait do so together.
func TestWaitingRequestsShareTheirProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(chunks int) time.Duration {
			x := newTable(t, 0, 0)
			o := x.options()
			o.Reader, o.Writer = absent{x}, writable{table: x}
			r := &Requests{Options: o, hand: newItemHand()}
			return serveUntil(t, r, ask(chunks, 150))
		}
		if one, ten := took(1), took(10); ten > one*3/2 {
			t.Errorf("one request takes %s, ten take %s", one, ten)
		}
	})
}

// TestRequestsSideBySideStayWithinTheMemory: they all read, but one after the other, and only while
// there is room.
func TestRequestsSideBySideStayWithinTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 0, 0)
		o := x.options()
		r := &Requests{Options: o, hand: newItemHand()}
		l := &large{absent: absent{x}, hand: r.hand}
		r.Reader, r.Writer = l, writable{table: x}
		serveUntil(t, r, ask(20, 250))
		if l.most.Load() >= bytesInHand || l.together.Load() {
			t.Errorf("a read began with %d bytes in hand; together with another: %v", l.most.Load(), l.together.Load())
		}
		if items, bytes := r.hand.InHand(); items != 0 || bytes != 0 {
			t.Errorf("%d items and %d bytes are in hand at the end", items, bytes)
		}
	})
}

// TestStuckRowHoldsNoOtherRequest: the status says what its own request waits for.
func TestStuckRowHoldsNoOtherRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 0, 0)
		o := x.options()
		w := writable{table: x, stuck: make(chan struct{})}
		o.Reader, o.Writer = absent{x}, w
		r, m := &Requests{Options: o, hand: newItemHand()}, ask(40, 3)
		serveUntil(t, r, m, "c-00")
		if err := failure.Pause(t.Context(), slowRequest); err != nil {
			t.Fatal(err)
		}
		st := r.Status()
		if st == nil || st.Chunks != 1 || !strings.Contains(st.Why, "neither takes nor refuses the rows of 1 of its items") ||
			!strings.HasSuffix(st.Why, "later requests are done meanwhile") {
			t.Errorf("status: %+v", st)
		}
		close(w.stuck)
		r.work.all.Wait()
		if open := m.open(); len(open) > 0 || r.Status() != nil {
			t.Errorf("open: %v, status %+v", open, r.Status())
		}
	})
}

// TestStatusSaysThatAllRequestsAreStuck: the ones behind them are not begun, and are done when
// Bigtable takes the rows.
func TestStatusSaysThatAllRequestsAreStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 0, 0)
		o := x.options()
		w := writable{table: x, stuck: make(chan struct{}), of: maxInWork}
		o.Reader, o.Writer = absent{x}, w
		r, m := &Requests{Options: o, hand: newItemHand()}, ask(maxInWork+4, 3)
		for store := chunks(m); ; {
			busy, err := r.serve(t.Context(), &store)
			if err != nil {
				t.Fatal(err)
			}
			if !busy {
				break
			}
		}
		if err := failure.Pause(t.Context(), 2*slowRequest); err != nil {
			t.Fatal(err)
		}
		if open := m.open(); len(open) != maxInWork+4 {
			t.Errorf("only these are open: %v", open)
		}
		st := r.Status()
		if st == nil || st.Chunks != maxInWork || !strings.HasSuffix(st.Why, "later requests wait for one of 16 to end") {
			t.Errorf("status: %+v", st)
		}
		close(w.stuck)
		serveUntil(t, r, m)
		r.work.all.Wait()
	})
}

// obstinate is a Bigtable whose writes do not end with their context at once.
type obstinate struct {
	*table
	begun, ended *atomic.Int32
}

func (w obstinate) Resync(ctx context.Context, _ *apply.ResyncItem) (apply.ResyncOutcome, error) {
	w.begun.Add(1)
	err := failure.Pause(context.WithoutCancel(ctx), time.Minute)
	w.ended.Add(1)
	return apply.ResyncOutcome{Written: 1}, err
}

// TestRequestsEndWithTheirLife: no chunk writes after Run has returned, because the next life may
// belong to another process.
func TestRequestsEndWithTheirLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 0, 0)
		o := x.options()
		var begun, ended atomic.Int32
		o.Reader, o.Writer = absent{x}, obstinate{x, &begun, &ended}
		r := &Requests{Options: o, Poll: time.Second, hand: newItemHand()}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		r.loop(ctx, ask(1, 1))
		if begun.Load() != 1 || ended.Load() != 1 {
			t.Errorf("%d writes were begun, %d ended", begun.Load(), ended.Load())
		}
	})
}

// refusing is a table whose owner may not read some items.
type refusing struct{ absent }

func (x refusing) ReadItems(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error) {
	for _, key := range keys {
		if strings.HasSuffix(string(key), `-149"}}`) {
			return nil, &source.Error{Op: "read", Class: failure.Denied, Err: errors.New("not allowed")}
		}
	}
	return x.absent.ReadItems(ctx, table, keys)
}

// TestRequestThatCannotBeReadHoldsNoRoom: it has items in hand when its second read is refused.
// Others read after it.
func TestRequestThatCannotBeReadHoldsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 0, 0)
		o := x.options()
		o.Reader, o.Writer = refusing{absent{x}}, writable{table: x}
		r, m := &Requests{Options: o, hand: newItemHand()}, ask(20, 150)
		serveUntil(t, r, m)
		r.work.all.Wait()
		for _, c := range m.chunks {
			if c.Outcome.Failed == "" {
				t.Errorf("chunk %s: %+v", c.ID, c.Outcome)
			}
		}
		if items, bytes := r.hand.InHand(); items != 0 || bytes != 0 {
			t.Errorf("%d items and %d bytes are in hand at the end", items, bytes)
		}
	})
}

// once is a table that refuses its first read.
type once struct {
	absent
	asked *atomic.Int64
	class failure.Class
}

func (x once) ReadItems(ctx context.Context, table string, keys [][]byte) (*source.ItemBatch, error) {
	if x.asked.Add(1) == 1 {
		return nil, &source.Error{Op: "read", Class: x.class, Err: errors.New("not now")}
	}
	return x.absent.ReadItems(ctx, table, keys)
}

// Rule 13: one refusal of DynamoDB is no outcome of a request.
func TestRequestIsNotRefusedByOneAnswer(t *testing.T) {
	for _, class := range []failure.Class{failure.Denied, failure.Gone, failure.Missing, failure.Rejected} {
		synctest.Test(t, func(t *testing.T) {
			x := newTable(t, 0, 0)
			o := x.options()
			o.Reader, o.Writer = once{absent{x}, &atomic.Int64{}, class}, writable{table: x}
			r, m := &Requests{Options: o, hand: newItemHand()}, ask(1, 3)
			serveUntil(t, r, m)
			r.work.all.Wait()
			if out := m.chunks[0].Outcome; out.Failed != "" {
				t.Errorf("%v: %+v", class, out)
			}
		})
	}
}

// TestRequestsAreLookedForFromTheBeginning: only a look at all of them finds the outcomes that
// nobody has fetched for a day, and deletes them.
func TestRequestsAreLookedForFromTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTable(t, 0, 0)
		o := x.options()
		o.Reader, o.Writer = absent{x}, writable{table: x}
		r, m := &Requests{Options: o, hand: newItemHand()}, ask(3, 3)
		serveUntil(t, r, m)
		r.work.all.Wait()
		store := chunks(m)
		if busy, err := r.serve(t.Context(), &store); busy || err != nil || m.after != 0 {
			t.Errorf("busy: %v, %v; looked behind %d", busy, err, m.after)
		}
	})
}

// TestOutcomeTellsWhenLettersCanBeRetried: the latest of all items counts, in whole seconds as the
// service's clock shows them; a letter that stays for another reason has no time.
func TestOutcomeTellsWhenLettersCanBeRetried(t *testing.T) {
	out := &request.Outcome{}
	countLetters(out, 0, &apply.ResyncOutcome{
		LettersLeft: []apply.LetterLeft{{ID: "a", Until: 61_001}}, LettersWaiting: 1, LettersLater: 2, LettersUntil: 62_000,
	})
	countLetters(out, 1, &apply.ResyncOutcome{LettersLeft: []apply.LetterLeft{{ID: "b"}}})
	countLetters(out, 2, &apply.ResyncOutcome{
		LettersLeft: []apply.LetterLeft{{ID: "c", Until: 30_500}}, LettersLater: 1, LettersUntil: 30_500,
	})
	if out.Refused != 3 || out.Waiting != 1 || out.Later != 3 || out.Until.UnixMilli() != 62_000 {
		t.Errorf("%+v", out)
	}
	for i, want := range []int64{62_000, time.Time{}.UnixMilli(), 31_000} {
		if got := out.Notes[i].Until.UnixMilli(); got != want {
			t.Errorf("letter %s: %d, want %d", out.Notes[i].Letter, got, want)
		}
	}
}
