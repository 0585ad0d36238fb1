package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/queue/internal/testpage"
)

// ownedPair claims a new log and starts two shards in it: frames of one shard contradict no state of
// the other, so that only the chain shows that a frame assumes an entry that is not there.
func ownedPair(t testing.TB, q *Queue) *Writer {
	t.Helper()
	w := claim(t, createLog(t, q), "a")
	mustAppend(t, w, &checkpoint.Start{
		Stream: stream, Date: second, Shards: []checkpoint.ShardSeen{{ID: "shard-1"}, {ID: "shard-2"}},
	}, nil)
	return w
}

// packedOf packs n records after what the state holds of a shard.
func packedOf(t testing.TB, s *checkpoint.State, shard string, n int) *frame.Packed {
	t.Helper()
	sh := s.Shards[shard]
	p := testpage.After(t, sh.Pos, sh.Clock, n, 10)
	p.Feed.Shard = shard
	return &mustPack(t, conn.MaxPayload, p)[0]
}

// following returns a function for AppendFrame.
func following(f *frame.Packed) func(<-chan struct{}) *frame.Packed {
	return func(<-chan struct{}) *frame.Packed { return f }
}

// storedOf reads the pages of each shard.
func storedOf(t testing.TB, l *Log, last uint64) map[string][]checkpoint.PageHead {
	t.Helper()
	ctx := testContext(t)
	r, err := l.Read(ctx, 0, checkpoint.Hash{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	all := map[string][]checkpoint.PageHead{}
	for {
		seq, e, err := r.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := e.Body.(*checkpoint.Frame); ok {
			for _, p := range f.Pages {
				all[p.Feed.Shard] = append(all[p.Feed.Shard], p)
			}
		}
		if seq >= last {
			return all
		}
	}
}

// addsUp compares the writer's state with the log's, in which every message counts.
func addsUp(t testing.TB, w *Writer) {
	t.Helper()
	s := fold(t, w.Log())
	if s.Foreign > 0 {
		t.Errorf("%d messages are in the log that are not part of its chain", s.Foreign)
	}
	sameState(t, s, w.State())
}

func TestFrameThatWasEncodedAheadFollows(t *testing.T) {
	ctx := testContext(t)
	w := ownedPair(t, embeddedQueue(t))
	first, next := packedOf(t, w.State(), "shard-1", 5), packedOf(t, w.State(), "shard-2", 5)
	answered := false
	if _, err := w.AppendFrame(ctx, first, func(acked <-chan struct{}) *frame.Packed {
		<-acked
		answered = true
		return next
	}); err != nil || !answered {
		t.Fatalf("answered: %v, %v", answered, err)
	}
	a := w.ahead
	if a == nil || a.prev != w.State().Hash {
		t.Fatalf("ahead: %+v", a)
	}
	hash := a.entry.read.Hash()
	if _, err := w.AppendFrame(ctx, next, nil); err != nil {
		t.Fatal(err)
	}
	if w.State().Hash != hash {
		t.Error("the frame was encoded again")
	}
	if w.State().Changes != 10 {
		t.Errorf("%d changes", w.State().Changes)
	}
	addsUp(t, w)
}

// Whatever is appended between two frames, the second one names it as its predecessor.
func TestFrameIsEncodedAgainBehindAnotherEntry(t *testing.T) {
	ctx := testContext(t)
	for name, between := range map[string]func(t *testing.T, w *Writer){
		"beat": func(t *testing.T, w *Writer) { mustAppend(t, w, &checkpoint.Beat{Date: second}, nil) },
		"marks and trim": func(t *testing.T, w *Writer) {
			markAll(t, w)
			trim(t, w, math.MaxUint64)
		},
		"control": func(t *testing.T, w *Writer) {
			mustAppend(t, w, &checkpoint.Control{Clear: true, By: "owner"}, nil)
		},
		"snapshot": func(t *testing.T, w *Writer) {
			if err := w.snapshot(ctx, true); err != nil {
				t.Fatal(err)
			}
		},
		"another frame": func(t *testing.T, w *Writer) {
			if _, err := w.AppendFrame(ctx, packedOf(t, w.State(), "shard-1", 5), nil); err != nil {
				t.Fatal(err)
			}
		},
		"what a full log refuses": func(t *testing.T, w *Writer) {
			limit := w.folded.info.MaxBytes
			w.folded.info.MaxBytes = 1
			if !refuses(t, w, &checkpoint.Beat{Date: second}, nil) {
				t.Fatal("a full log takes a beat")
			}
			w.folded.info.MaxBytes = limit
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := ownedPair(t, embeddedQueue(t))
			next := packedOf(t, w.State(), "shard-2", 5)
			if _, err := w.AppendFrame(ctx, packedOf(t, w.State(), "shard-1", 5), following(next)); err != nil {
				t.Fatal(err)
			}
			if w.ahead == nil {
				t.Fatal("nothing is ahead")
			}
			between(t, w)
			if _, err := w.AppendFrame(ctx, next, nil); err != nil {
				t.Fatalf("behind it: %v", err)
			}
			addsUp(t, w)
		})
	}
}

// A snapshot that is due follows a frame, and the next frame is encoded behind the snapshot.
func TestFrameAheadFollowsTheSnapshotThatIsDue(t *testing.T) {
	ctx := testContext(t)
	w := ownedPair(t, embeddedQueue(t))
	s := w.State()
	next, calls := packedOf(t, s, "shard-2", 5), 0
	s.BytesSinceSnapshot = 4<<20 - 1
	seq, err := w.AppendFrame(ctx, packedOf(t, s, "shard-1", 5), func(<-chan struct{}) *frame.Packed {
		calls++
		return next
	})
	if err != nil || s.SnapshotFirst != seq+1 || calls != 1 {
		t.Fatalf("snapshot at %d behind frame %d, %d calls: %v", s.SnapshotFirst, seq, calls, err)
	}
	if w.ahead == nil || w.ahead.prev != s.Hash {
		t.Fatalf("ahead: %+v", w.ahead)
	}
	if _, err := w.AppendFrame(ctx, next, nil); err != nil {
		t.Fatal(err)
	}
	addsUp(t, w)
}

// fate is what becomes of one append.
type fate int

const (
	stored        fate = iota
	lost               // on the way to the server
	ackLost            // on the way back
	acrossConnect      // answered on a connection that is gone by then
	late               // it arrives when its writer has gone on
)

// fated is a client that decides what becomes of appends.
type fated struct {
	jetstream.JetStream
	q    *Queue
	next func(m *nats.Msg) fate
	late []*nats.Msg
}

func (f *fated) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	what := f.next(m)
	switch what {
	case late:
		kept := nats.NewMsg(m.Subject) // the caller uses the memory again
		kept.Header, kept.Data = m.Header, append([]byte(nil), m.Data...)
		f.late = append(f.late, kept)
		return nil, context.DeadlineExceeded
	case lost:
		return nil, context.DeadlineExceeded
	}
	ack, err := f.JetStream.PublishMsg(ctx, m, opts...)
	switch what {
	case ackLost:
		return nil, context.DeadlineExceeded
	case acrossConnect:
		f.q.conn.Connections.Add(1)
	}
	return ack, err
}

// arrive lets late appends arrive.
func (f *fated) arrive(ctx context.Context) {
	for _, m := range f.late {
		_, _ = f.JetStream.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	}
	f.late = nil
}

// decide replaces the queue's client by one that decides what becomes of appends.
func decide(q *Queue, next func(m *nats.Msg) fate) *fated {
	f := &fated{JetStream: q.conn.JS, q: q, next: next}
	q.conn.JS = f
	return f
}

// Rule 4: after an unknown outcome nothing is appended that was encoded on the assumption that the
// entry before it is stored, wherever the outcome became unknown.
func TestUnknownOutcomeDropsTheFrameAhead(t *testing.T) {
	ctx := testContext(t)
	frames := func(what fate) func(*nats.Msg) fate {
		return func(m *nats.Msg) fate {
			if e, err := checkpoint.Decode(m.Data); err == nil && e.Kind == checkpoint.KindFrame {
				return what
			}
			return stored
		}
	}
	control := func(t *testing.T, w *Writer) {
		if _, err := w.Log().AppendControl(ctx, &checkpoint.Control{Clear: true, By: "other"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		fate     func(*nats.Msg) fate
		before   func(*testing.T, *Writer) // the first frame
		after    func(*testing.T, *Writer) // it, if it is acknowledged
		snapshot bool                      // is due behind it
	}{
		"the frame is lost":               {fate: frames(lost)},
		"the frame arrives late":          {fate: frames(late)},
		"its acknowledgement is lost":     {fate: frames(ackLost)},
		"the connection is another":       {fate: frames(acrossConnect)},
		"another process appended before": {before: control},
		"another process appended behind": {after: func(t *testing.T, w *Writer) {
			control(t, w)
			if _, err := w.Trim(ctx, 0); !errors.Is(err, ErrOutcomeUnknown) {
				t.Fatalf("trim: %v", err)
			}
		}},
		"the connection is lost behind it": {after: func(t *testing.T, w *Writer) { w.l.q.conn.Connections.Add(1) }},
		"the snapshot behind it is unknown": {snapshot: true, fate: func(m *nats.Msg) fate {
			if e, err := checkpoint.Decode(m.Data); err == nil && e.Kind == checkpoint.KindSnapshot {
				return ackLost
			}
			return stored
		}},
	} {
		t.Run(name, func(t *testing.T) {
			q := embeddedQueue(t)
			w := ownedPair(t, q)
			usual := q.conn.JS
			first, next := packedOf(t, w.State(), "shard-1", 5), packedOf(t, w.State(), "shard-2", 5)
			if c.before != nil {
				c.before(t, w)
			}
			if c.snapshot {
				w.State().BytesSinceSnapshot = 4 << 20
			}
			server := &fated{}
			if c.fate != nil {
				server = decide(q, c.fate)
			}
			_, err := w.AppendFrame(ctx, first, following(next))
			q.conn.JS = usual
			if c.after != nil || c.snapshot {
				if err != nil {
					t.Fatal(err)
				}
			} else if !errors.Is(err, ErrOutcomeUnknown) {
				t.Fatalf("first frame: %v, want an unknown outcome", err)
			}
			if c.after != nil {
				c.after(t, w)
			}
			if _, err := w.AppendFrame(ctx, next, nil); !errors.Is(err, ErrOutcomeUnknown) {
				t.Fatalf("next frame before Recover: %v, want an unknown outcome", err)
			}
			if w.ahead != nil {
				t.Error("the frame ahead is kept")
			}
			if err := w.Recover(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := w.AppendFrame(ctx, next, nil); err != nil {
				t.Errorf("next frame behind what is stored: %v", err)
			}
			server.arrive(ctx)
			addsUp(t, w)
		})
	}
}

// Histories with unknown outcomes at every point: the log holds each page of each shard once, in
// order, and nothing else. The caller keeps packed frames over a Recover where the state allows it,
// as no write loop does: so only the writer keeps stale ones out of the log.
func TestHistoriesOfFramesAhead(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			q := embeddedQueue(t)
			rng := rand.New(rand.NewPCG(seed, 3))
			h := &history{t: t, rng: rng, w: ownedPair(t, q), packed: map[string]*frame.Packed{}}
			h.server = decide(q, func(*nats.Msg) fate {
				if rng.IntN(5) > 0 {
					return stored
				}
				return fate(1 + rng.IntN(int(late)))
			})
			for range 40 {
				h.step()
			}
			h.server.next = func(*nats.Msg) fate { return stored }
			h.settle()
			h.check()
		})
	}
}

// history appends frames of two shards, and other entries, to a log whose server loses some.
type history struct {
	t      *testing.T
	rng    *rand.Rand
	w      *Writer
	server *fated
	packed map[string]*frame.Packed // by shard; a frame that was not acknowledged
	ahead  int                      // frames that were encoded before the one before was acknowledged
}

func (h *history) step() {
	ctx := testContext(h.t)
	h.settle()
	switch h.rng.IntN(8) {
	case 0:
		_, err := h.w.Append(ctx, &checkpoint.Beat{Date: second}, nil)
		h.outcome(err)
	case 1:
		h.outcome(h.w.snapshot(ctx, true))
	case 2:
		h.server.arrive(ctx)
	case 3:
		if _, err := h.w.Trim(ctx, 0); err != nil {
			h.outcome(err)
		}
	default:
		h.frame()
	}
}

// frame appends a frame of a shard; meanwhile the frame that follows is known, of the other shard.
func (h *history) frame() {
	shard, other := "shard-1", "shard-2"
	if h.rng.IntN(2) == 0 {
		shard, other = other, shard
	}
	f, next := h.of(shard), h.of(other)
	_, err := h.w.AppendFrame(testContext(h.t), f, following(next))
	if h.w.ahead != nil {
		h.ahead++
	}
	if err == nil {
		delete(h.packed, shard)
	}
	h.outcome(err)
}

// of returns the next frame of a shard.
func (h *history) of(shard string) *frame.Packed {
	s := h.w.State()
	if f := h.packed[shard]; f != nil && f.Body.Pages[0].From == s.Shards[shard].Pos {
		return f
	}
	h.packed[shard] = packedOf(h.t, s, shard, 1+h.rng.IntN(3))
	return h.packed[shard]
}

// outcome goes on from what is stored, if an outcome is unknown.
func (h *history) outcome(err error) {
	h.t.Helper()
	if err != nil && !errors.Is(err, ErrOutcomeUnknown) {
		h.t.Fatal(err)
	}
	if err == nil {
		return
	}
	if h.rng.IntN(2) == 0 {
		h.server.arrive(testContext(h.t))
	}
	if err := h.w.Recover(testContext(h.t)); err != nil {
		h.t.Fatal(err)
	}
}

// settle goes on from what is stored, if the outcome of a snapshot behind an acknowledged entry is
// unknown.
func (h *history) settle() {
	if h.w.unknown != nil || h.w.folded.connection != h.w.l.q.conn.Connections.Load() {
		h.outcome(ErrOutcomeUnknown)
	}
}

func (h *history) check() {
	ctx := testContext(h.t)
	h.server.arrive(ctx)
	h.outcome(ErrOutcomeUnknown)
	for _, shard := range []string{"shard-1", "shard-2"} {
		if _, err := h.w.AppendFrame(ctx, h.of(shard), nil); err != nil {
			h.t.Fatal(err)
		}
	}
	addsUp(h.t, h.w)
	if h.ahead == 0 {
		h.t.Error("no frame was encoded ahead: the history shows nothing")
	}
	for shard, pages := range storedOf(h.t, h.w.Log(), h.w.State().Seq) {
		at := change.Position{}
		for _, p := range pages {
			if p.From != at {
				h.t.Errorf("a page of %s begins at %v, the one before ends at %v", shard, p.From, at)
			}
			at = p.To
		}
		if d := cmp.Diff(h.w.State().Shards[shard].Pos, at); d != "" {
			h.t.Error(d)
		}
	}
}
