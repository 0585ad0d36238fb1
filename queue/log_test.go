package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// sameState compares two states, apart from private fields such as the place where the fold began.
func sameState(t testing.TB, got, want *checkpoint.State) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(checkpoint.State{}, checkpoint.Chain{}, checkpoint.Shard{}),
		cmpopts.EquateEmpty()); d != "" {
		t.Fatal(d)
	}
}

func TestLogFoldsToWhatWasAppended(t *testing.T) {
	w := owned(t, embeddedQueue(t))
	for range 5 {
		appendPage(t, w, 10, 100)
	}
	sameState(t, fold(t, w.Log()), w.State())
	if got, want := w.State().Changes, uint64(50); got != want {
		t.Fatalf("%d changes, want %d", got, want)
	}
	if d := cmp.Diff(sequences(1, 50), readSeqs(t, w.Log(), w.State().Seq)); d != "" {
		t.Fatal(d)
	}
}

func TestLogFoldsFromItsLastSnapshot(t *testing.T) {
	w := owned(t, embeddedQueue(t))
	for w.State().SnapshotFirst == 0 {
		appendPage(t, w, 400, 1000)
	}
	appendPage(t, w, 3, 10)
	if got := fold(t, w.Log()); got.SnapshotFirst != w.State().SnapshotFirst {
		t.Fatalf("snapshot at %d, want %d", got.SnapshotFirst, w.State().SnapshotFirst)
	}
	sameState(t, fold(t, w.Log()), w.State())
}

// Another program stores an old snapshot again: what was stored after it still counts.
func TestSnapshotThatIsStoredAgainIsNoBase(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	if err := w.snapshot(ctx, true); err != nil {
		t.Fatal(err)
	}
	old, err := w.l.message(ctx, w.State().SnapshotFirst)
	if err != nil {
		t.Fatal(err)
	}
	appendPage(t, w, 5, 10)
	if _, err := w.l.q.conn.JS.Publish(ctx, w.l.subject.Snapshot, old.Data); err != nil {
		t.Fatal(err)
	}
	if s := fold(t, w.Log()); s.Changes != 5 || s.Hash != w.State().Hash || s.Foreign != 1 {
		t.Fatalf("%d changes, %d foreign messages", s.Changes, s.Foreign)
	}
}

func TestSecondWriterIsRefusedAndStops(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	appendPage(t, w, 5, 10)
	rival := claim(t, w.Log(), "b") // waits until a stood still for its TTL
	_, err := w.Append(ctx, &checkpoint.Beat{Date: second}, nil)
	if !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("append after the rival's claim: %v, want an unknown outcome", err)
	}
	if err := w.Recover(ctx); !errors.Is(err, ErrLost) {
		t.Fatalf("recover after the rival's claim: %v, want lost", err)
	}
	if _, err := w.Append(ctx, &checkpoint.Beat{Date: second}, nil); !errors.Is(err, ErrLost) {
		t.Fatalf("append after that: %v, want lost", err)
	}
	appendPage(t, rival, 5, 10)
	if d := cmp.Diff(sequences(1, 10), readSeqs(t, w.Log(), rival.State().Seq)); d != "" {
		t.Fatal(d)
	}
}

func TestEntryThatContradictsTheLogIsNotStored(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	appendPage(t, w, 5, 10)
	before := fold(t, w.Log()).Seq
	for _, body := range []any{
		&checkpoint.Graph{Stream: "another stream"},
		&checkpoint.Gap{Feed: change.Feed{Stream: "another stream", Shard: "of another shard"}},
		&checkpoint.Marks{Sinks: map[string]checkpoint.Mark{"bigtable": {Seq: before + 100}}},
	} {
		corrupt := (*checkpoint.CorruptError)(nil)
		if _, err := w.Append(ctx, body, nil); !errors.As(err, &corrupt) {
			t.Errorf("append %T: %v, want a contradiction", body, err)
		}
	}
	if got := fold(t, w.Log()).Seq; got != before {
		t.Fatalf("the log grew to %d: it cannot be folded any more", got)
	}
	appendPage(t, w, 5, 10)
}

// beatUntil appends beats until a claim of another owner with this TTL has ended. late says that
// the machine stood still for so long that the other one may have the log.
func beatUntil(t *testing.T, w *Writer, ttl time.Duration, claimed <-chan error) (late bool, err error) {
	t.Helper()
	for {
		last := time.Now()
		select {
		case err := <-claimed:
			return late || time.Since(last) > ttl/2, err
		case <-time.After(50 * time.Millisecond):
		}
		_, err := w.Append(testContext(t), &checkpoint.Beat{Date: second}, nil)
		if late = late || time.Since(last) > ttl/2; err != nil && !late {
			t.Fatal(err)
		}
	}
}

func TestClaimWaitsForALivingOwner(t *testing.T) {
	for held := false; !held; {
		w := owned(t, embeddedQueue(t))
		ctx, cancel := context.WithTimeout(testContext(t), 2*time.Second)
		done := make(chan error, 1)
		go func() {
			_, err := w.Log().Claim(ctx, ClaimOptions{Owner: "b", TTL: time.Second})
			done <- err
		}()
		late, err := beatUntil(t, w, time.Second, done)
		if held = errors.Is(err, ErrHeld); !held && !late {
			t.Fatalf("claim of a living log: %v, want held", err)
		}
		cancel()
	}
}

// TestReleaseBehindAnEntryOfACommandIsRepeated: the server has refused it, so the log is still
// owned. Behind a release nothing is appended.
func TestReleaseBehindAnEntryOfACommandIsRepeated(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	if _, err := w.Log().AppendControl(ctx, &checkpoint.Control{Pause: new(true)}); err != nil {
		t.Fatal(err)
	}
	if err := w.HandOver(ctx, "b"); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("a release that another entry precedes: %v", err)
	}
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.HandOver(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if s, err := w.Log().Fold(ctx); err != nil || !s.Released || s.ReleasedTo != "b" || !s.Paused {
		t.Errorf("released %t to %q, paused %t: %v", s.Released, s.ReleasedTo, s.Paused, err)
	}
	if _, err := w.Append(ctx, &checkpoint.Beat{Date: 1}, nil); !errors.Is(err, ErrLost) {
		t.Errorf("a beat behind the release: %v", err)
	}
}

func TestReleasedLogIsClaimedAtOnce(t *testing.T) {
	w := owned(t, embeddedQueue(t))
	if err := w.Release(testContext(t)); err != nil {
		t.Fatal(err)
	}
	before := w.State()
	b, err := w.Log().Claim(testContext(t), ClaimOptions{Owner: "b", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.State(); got.Epoch != before.Epoch+1 || got.Owner != "b" || got.SnapshotFirst == 0 {
		t.Fatalf("epoch %d of %s, snapshot at %d", got.Epoch, got.Owner, got.SnapshotFirst)
	}
}

// A TTL of a millisecond is not enough: on a busy machine each look takes longer, and such time
// does not count.
func TestLogOfADeadOwnerIsClaimedAtOnceByTheOnlyProcess(t *testing.T) {
	w := owned(t, embeddedQueue(t))
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	c := newClaimer(w.Log(), ClaimOptions{Owner: "b", TTL: time.Hour, Alone: true}, checkpoint.Nonce{1})
	b, err := c.try(testContext(t), nil)
	if err != nil || b == nil || b.State().Owner != "b" {
		t.Fatalf("claimed %v, %v", b != nil, err)
	}
}

// Two claimers both see that the log does not grow: the server accepts only one of their claims.
func TestTwoClaimersOneWins(t *testing.T) {
	long(t, "4 s")
	for held := false; !held; {
		w := owned(t, embeddedQueue(t))
		ctx, cancel := context.WithCancel(testContext(t))
		winners, ended := make(chan *Writer, 2), make(chan error, 2)
		for _, owner := range []string{"b", "c"} {
			go func() {
				w, err := w.Log().Claim(ctx, ClaimOptions{Owner: owner, TTL: time.Second})
				winners <- w
				ended <- err
			}()
		}
		first := <-winners
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3*time.Second, cancel)
		late, err := beatUntil(t, first, time.Second, ended)
		if held = errors.Is(err, ErrHeld) || errors.Is(err, context.Canceled); !held && !late {
			t.Fatalf("second claim: %v, want held until it was cancelled", err)
		}
		cancel()
	}
}

// Attack 39 of test/attacklist_test.go.
func TestStrayPublishHasNoEffect(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	appendPage(t, w, 5, 10)
	l := w.Log()
	old, err := checkpoint.Encode(nil, &checkpoint.Entry{Kind: checkpoint.KindBeat, Epoch: w.Epoch(), Nonce: w.nonce,
		Body: &checkpoint.Beat{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, stray := range []struct {
		subject string
		data    []byte
	}{{l.subject.Entry, []byte("hello")}, {l.subject.Snapshot, []byte("TRLG\x01n")}, {l.subject.Entry, old}} {
		if _, err := q.conn.JS.Publish(ctx, stray.subject, stray.data); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Append(ctx, &checkpoint.Beat{Date: second}, nil); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("append after a stray publish: %v, want an unknown outcome", err)
	}
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	appendPage(t, w, 5, 10)
	core, lines := observer.New(zap.WarnLevel)
	q.log = zap.New(core)
	q.lastLogged.Clear()
	for range 2 {
		l, err := q.Log(ctx, "Orders")
		if err != nil {
			t.Fatal(err)
		}
		if s := fold(t, l); s.Foreign != 3 || s.Changes != 10 {
			t.Fatalf("%d foreign, %d changes, want 3, 10", s.Foreign, s.Changes)
		}
	}
	if n := lines.FilterMessageSnippet("not entries of its chain").Len(); n != 1 {
		t.Errorf("stray messages are reported %d times by two folds", n)
	}
	if d := cmp.Diff(sequences(1, 10), readSeqs(t, l, w.State().Seq)); d != "" {
		t.Fatal(d)
	}
}

func TestControlOfAnotherProcessIsObeyed(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	pause := true
	if _, err := w.Log().AppendControl(ctx, &checkpoint.Control{Pause: &pause, By: "me"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(ctx, &checkpoint.Beat{Date: second}, nil); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("append after a control entry: %v, want an unknown outcome", err)
	}
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if !w.State().Paused {
		t.Fatal("not paused")
	}
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
}
