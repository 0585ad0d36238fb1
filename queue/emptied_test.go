package queue

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

func TestStreamDeletedUnderTheWriter(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	r, err := w.Log().Read(ctx, w.State().Seq+1, w.State().Hash)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	if err := q.conn.JS.DeleteStream(ctx, w.Log().name); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(ctx, &checkpoint.Beat{}, nil); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("append: %v, want an unknown outcome", err)
	}
	if err := w.Recover(ctx); !errors.Is(err, ErrEmptied) {
		t.Fatalf("recover: %v, want emptied", err)
	}
	if _, _, err := r.Next(ctx); !errors.Is(err, ErrEmptied) {
		t.Fatalf("read: %v, want emptied", err)
	}
	if _, err := q.Log(ctx, "Orders"); !errors.Is(err, ErrNoLog) {
		t.Fatalf("open: %v, want no log", err)
	}
}

func TestStreamMadeAgainUnderTheWriter(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	created := w.Log().Created()
	r, err := w.Log().Read(ctx, w.State().Seq+1, w.State().Hash)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	if err := q.conn.JS.DeleteStream(ctx, w.Log().name); err != nil {
		t.Fatal(err)
	}
	again := createLog(t, q)
	if _, err := w.Append(ctx, &checkpoint.Beat{}, nil); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("append: %v, want an unknown outcome", err)
	}
	if err := w.Recover(ctx); !errors.Is(err, ErrEmptied) {
		t.Fatalf("recover: %v, want emptied", err)
	}
	if _, _, err := r.Next(ctx); !errors.Is(err, ErrEmptied) {
		t.Fatalf("read: %v, want emptied", err)
	}
	if _, err := again.Check(ctx, created); !errors.Is(err, ErrEmptied) {
		t.Fatalf("start-up check: %v, want emptied", err)
	}
}

func TestLogPurgedByHandIsRefused(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	l := w.Log()
	if err := l.stream.Purge(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Check(ctx, l.Created()); !errors.Is(err, ErrEmptied) {
		t.Fatalf("start-up check: %v, want emptied", err)
	}
	if _, err := l.Fold(ctx); !errors.Is(err, ErrEmptied) {
		t.Fatalf("fold: %v, want emptied", err)
	}
	if _, err := l.Claim(ctx, ClaimOptions{Owner: "b"}); !errors.Is(err, ErrEmptied) {
		t.Fatalf("claim: %v, want emptied", err)
	}
	w.unknown = errors.New("some")
	if err := w.Recover(ctx); !errors.Is(err, ErrEmptied) {
		t.Fatalf("recover: %v, want emptied", err)
	}
}

// Everything up to and including the last snapshot was purged: no state can be computed from the
// rest.
func TestLogWithoutItsBeginningIsRefused(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	appendPage(t, w, 3, 10)
	if err := w.Log().stream.Purge(ctx, jetstream.WithPurgeSequence(w.State().Seq)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Log().Fold(ctx); !errors.Is(err, ErrDamaged) {
		t.Fatalf("fold: %v, want damaged", err)
	}
	if _, err := w.Log().AppendControl(ctx, &checkpoint.Control{Resume: true}); !errors.Is(err, ErrDamaged) {
		t.Fatalf("resume with nothing to go on from: %v, want damaged", err)
	}
	if _, err := w.Log().Read(ctx, w.State().Seq-1, checkpoint.Hash{1}); !errors.Is(err, ErrGap) {
		t.Fatalf("read from a trimmed mark: %v, want gap", err)
	}
}

// streamStoreFailed is the server's code for a stream whose store could not be made.
const streamStoreFailed jetstream.ErrorCode = 10049

// ownedDamageable returns the writer of a log whose messages can be deleted one by one, as if the
// store were damaged. Logs normally deny that.
func ownedDamageable(t *testing.T, q *Queue) *Writer {
	t.Helper()
	ctx := testContext(t)
	l := createLog(t, q)
	config := l.stream.CachedInfo().Config
	if err := q.conn.JS.DeleteStream(ctx, l.name); err != nil {
		t.Fatal(err)
	}
	config.DenyDelete = false
	// The server answers a deletion before its directory is gone, and then cannot make another of
	// that name yet.
	var busy *jetstream.APIError
	_, err := q.conn.JS.CreateStream(ctx, config)
	for errors.As(err, &busy) && busy.ErrorCode == streamStoreFailed && ctx.Err() == nil {
		_, err = q.conn.JS.CreateStream(ctx, config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return owned(t, q)
}

// When a store has lost its newest entries, the state goes back to the entries before them, and
// appends go on there.
func TestLostTailRollsTheStateBack(t *testing.T) {
	ctx := testContext(t)
	w := ownedDamageable(t, embeddedQueue(t))
	l := w.Log()
	appendPage(t, w, 3, 10)
	tail := appendPage(t, w, 3, 10)
	if err := l.stream.DeleteMsg(ctx, tail); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Check(ctx, l.Created()); err != nil {
		t.Fatal(err)
	}
	if got := fold(t, l).Changes; got != 3 {
		t.Fatalf("%d changes, want 3", got)
	}
	rival := claim(t, l, "b")
	appendPage(t, rival, 3, 10)
	if d := cmp.Diff(sequences(1, 6), readSeqs(t, l, rival.State().Seq)); d != "" {
		t.Fatal(d)
	}
	sameState(t, fold(t, l), rival.State())
}

func TestReaderStopsAtMissingEntries(t *testing.T) {
	ctx := testContext(t)
	w := ownedDamageable(t, embeddedQueue(t))
	hole := appendPage(t, w, 3, 10)
	appendPage(t, w, 3, 10)
	if err := w.Log().stream.DeleteMsg(ctx, hole); err != nil {
		t.Fatal(err)
	}
	r, err := w.Log().Read(ctx, 0, checkpoint.Hash{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	for err == nil {
		_, _, err = r.Next(ctx)
	}
	if !errors.Is(err, ErrDamaged) {
		t.Fatalf("read over a hole: %v, want damaged", err)
	}
	if _, err := w.Log().Fold(ctx); !errors.Is(err, ErrDamaged) {
		t.Fatalf("fold over a hole: %v, want damaged", err)
	}
	if _, err := w.Log().Check(ctx, time.Time{}); !errors.Is(err, ErrGap) {
		t.Fatalf("start-up check over a hole: %v, want gap", err)
	}
}
