package queue

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/internal/testpage"
)

// markAll appends marks of a sink that has applied everything so far.
func markAll(t testing.TB, w *Writer) {
	t.Helper()
	s := w.State()
	mustAppend(t, w, &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{"bigtable": {Seq: s.Seq, Hash: s.Hash}}}, nil)
}

func trim(t testing.TB, w *Writer, below uint64) uint64 {
	t.Helper()
	first, err := w.Trim(testContext(t), below)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// fillToSnapshot appends until the volume asks for a snapshot.
func fillToSnapshot(t testing.TB, w *Writer) {
	t.Helper()
	for before := w.State().SnapshotFirst; w.State().SnapshotFirst == before; {
		appendPage(t, w, 300, 1500)
	}
}

// Attack 2 of test/attacklist_test.go: ten virtual days of a table without changes: only beats and
// listings. Trimming keeps the state.
func TestQuietTableKeepsItsStateThroughTrimming(t *testing.T) {
	q := embeddedQueue(t)
	w := owned(t, q)
	appendPage(t, w, 7, 10)
	markAll(t, w)
	origin := trim(t, w, math.MaxUint64)
	seen := []checkpoint.ShardSeen{{ID: "shard-1"}}
	for i := range 500 {
		seen = append(seen, checkpoint.ShardSeen{ID: fmt.Sprintf("shard-later-%03d", i), Parent: "shard-1"})
	}
	const days = 10
	for hour := range int64(days * 24) {
		mustAppend(t, w, &checkpoint.Graph{Stream: stream, Date: second + change.Millis(hour*3600_000), Complete: true,
			Shards: seen}, nil)
		mustAppend(t, w, &checkpoint.Beat{Date: second + change.Millis(hour*3600_000)}, nil)
		if first := trim(t, w, math.MaxUint64); first > w.State().SnapshotFirst && first != origin {
			t.Fatalf("trimmed up to %d, snapshot at %d", first, w.State().SnapshotFirst)
		}
	}
	if first := trim(t, w, math.MaxUint64); first == origin {
		t.Fatal("nothing was trimmed: the test shows nothing")
	}
	sameState(t, fold(t, w.Log()), w.State())
	if got, want := fold(t, w.Log()).Shards["shard-1"].Pos.After, testpage.Sequence(7); got != want {
		t.Fatalf("shard read up to %q, want %s", got, want)
	}
}

func TestTrimKeepsWhatASinkNeeds(t *testing.T) {
	w := owned(t, embeddedQueue(t))
	appendPage(t, w, 7, 10)
	markAll(t, w)
	mark := w.State().LowMark()
	fillToSnapshot(t, w)
	appendPage(t, w, 1, 1)
	if first := trim(t, w, math.MaxUint64); first != mark+1 {
		t.Fatalf("trimmed up to %d, the sink needs %d", first, mark+1)
	}
	info, err := w.Log().Info(testContext(t))
	if err != nil || info.First != mark+1 {
		t.Fatalf("log begins at %d: %v", info.First, err)
	}
	r, err := w.Log().Read(testContext(t), mark+1, w.State().Marks["bigtable"].Hash)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(testContext(t))
	if seq, _, err := r.Next(testContext(t)); seq != mark+1 || err != nil {
		t.Fatalf("read %d, want %d: %v", seq, mark+1, err)
	}
}

func TestTrimKeepsWhatASinkWithoutAMarkNeeds(t *testing.T) {
	w := owned(t, embeddedQueue(t))
	origin := trim(t, w, math.MaxUint64)
	markAll(t, w)
	fillToSnapshot(t, w)
	markAll(t, w)
	if first := trim(t, w, 0); first != origin {
		t.Fatalf("trimmed up to %d although the archive has no mark", first)
	}
	if first := trim(t, w, w.State().Marks["bigtable"].Seq+1); first != w.State().SnapshotFirst {
		t.Fatalf("trimmed up to %d, want %d", first, w.State().SnapshotFirst)
	}
}

func TestReplayWindowIsKeptUntilTheLogFillsUp(t *testing.T) {
	w := owned(t, embeddedIn(t, t.TempDir(), func(o *Options) { o.ReplayWindow, o.MaxBytes = time.Hour, 16<<20 }))
	origin := trim(t, w, math.MaxUint64)
	fillToSnapshot(t, w)
	markAll(t, w)
	if first := trim(t, w, math.MaxUint64); first != origin {
		t.Fatalf("trimmed up to %d inside the window", first)
	}
	for {
		p, err := w.Pressure(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if p.Fraction > shortenWindowAt+0.1 {
			break
		}
		appendPage(t, w, 300, 1500)
	}
	markAll(t, w)
	trim(t, w, math.MaxUint64)
	p, err := w.Pressure(testContext(t))
	if err != nil || p.Fraction > shortenWindowAt+0.05 || p.Fraction < 0.3 {
		t.Fatalf("%.2f of the limit in use after the window yielded: %v", p.Fraction, err)
	}
}

func TestEntriesOlderThanTheWindowAreTrimmed(t *testing.T) {
	w := owned(t, embeddedIn(t, t.TempDir(), func(o *Options) { o.ReplayWindow = time.Hour }))
	l := w.Log()
	last := appendPage(t, w, 3, 10)
	info, err := l.Info(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[time.Time]uint64{
		info.Oldest.Add(-time.Hour): info.First, info.Oldest: info.First, info.Oldest.Add(1): info.First + 1,
		time.Now().Add(time.Hour): last + 1,
	} {
		if got, err := l.SeqAt(testContext(t), at); got != want || err != nil {
			t.Errorf("%v: entry %d, want %d (%v)", at.Sub(info.Oldest), got, want, err)
		}
	}
}

// Rule 9: a full log takes no frames, drops nothing, and its reserve is for what lets it be
// trimmed.
func TestFullLogPausesAndRecovers(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedIn(t, t.TempDir(), func(o *Options) { o.MaxBytes = 8 << 20 }))
	n := 0
	for {
		frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 100, 1500))[0]
		_, err := w.Append(ctx, frame.Body, frame.Data)
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n += 100
	}
	if p, err := w.Pressure(ctx); err != nil || p.Fraction < 0.79 || p.Fraction > 0.9 {
		t.Fatalf("pause %v at %.2f of the limit: %v", p.Pause, p.Fraction, err)
	}
	for range 100 {
		mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	}
	if d := cmp.Diff(sequences(1, n), readSeqs(t, w.Log(), w.State().Seq)); d != "" {
		t.Fatal(d)
	}
	markAll(t, w)
	trim(t, w, math.MaxUint64)
	if p, err := w.Pressure(ctx); err != nil || p.Pause || p.Fraction > 0.1 {
		t.Fatalf("pause %v at %.2f of the limit after trimming: %v", p.Pause, p.Fraction, err)
	}
	appendPage(t, w, 100, 1500)
	if got, want := fold(t, w.Log()).Changes, uint64(n+100); got != want {
		t.Fatalf("%d changes, want %d", got, want)
	}
}

// A changed limit takes effect at the next start: a larger one helps a full log that cannot be
// trimmed yet.
func TestChangedLimitIsApplied(t *testing.T) {
	t.Run("larger", func(t *testing.T) { checkLimitApplied(t, 8<<20, 16<<20) })
	t.Run("smaller", func(t *testing.T) { checkLimitApplied(t, 16<<20, 8<<20) })
}

func checkLimitApplied(t *testing.T, from, to int64) {
	ctx := testContext(t)
	q := embeddedIn(t, t.TempDir(), func(o *Options) { o.MaxBytes = from })
	w := owned(t, q)
	if err := w.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	q = embeddedIn(t, q.opts.Dir, func(o *Options) { o.MaxBytes = to })
	l, err := q.Log(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	created := l.Created()
	if p, err := claim(t, l, "b").Pressure(ctx); err != nil || p.Limit != uint64(to) {
		t.Fatalf("limit %d: %v", p.Limit, err)
	}
	if info, err := l.Info(ctx); err != nil || info.serverLimit != uint64(to) {
		t.Fatalf("the server's limit is %d: %v", info.serverLimit, err)
	}
	if _, err := l.Check(ctx, created); err != nil {
		t.Fatal(err)
	}
}

// The server enforces the log's limit as well. When it refuses an entry, nothing is stored and the
// outcome is known.
func TestAppendBeyondTheServersLimitHasAKnownOutcome(t *testing.T) {
	ctx := testContext(t)
	q := embeddedIn(t, t.TempDir(), func(o *Options) { o.MaxBytes = 1 << 20 })
	w := owned(t, q)
	w.folded.info.MaxBytes = 0 // blind to the reserve
	var err error
	for err == nil {
		frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 100, 1500))[0]
		_, err = w.Append(ctx, frame.Body, frame.Data)
	}
	if !errors.Is(err, ErrFull) || errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("append to a full stream: %v", err)
	}
	sameState(t, fold(t, w.Log()), w.State())
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
}

func TestTooLargeEntryHasAKnownOutcome(t *testing.T) {
	w := owned(t, embeddedQueue(t))
	for _, size := range []int{w.Log().q.MaxPayload() + 1, conn.MaxPayload + 1} {
		if _, err := w.Append(testContext(t), &checkpoint.Frame{}, make([]byte, size)); !errors.Is(err, ErrTooLarge) ||
			errors.Is(err, ErrOutcomeUnknown) {
			t.Fatalf("append of %d bytes: %v", size, err)
		}
	}
	appendPage(t, w, 3, 10)
}

func TestSupersededOwnerDoesNotTrim(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	fillToSnapshot(t, w)
	markAll(t, w)
	claim(t, w.Log(), "b")
	if _, err := w.Trim(ctx, math.MaxUint64); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("trim of the old owner: %v, want an unknown outcome", err)
	}
	if info, err := w.Log().Info(ctx); err != nil || info.First != info.origin {
		t.Fatalf("log begins at %d, want %d: %v", info.First, info.origin, err)
	}
}

// Rule 1: after an unknown outcome the log may be an older copy that a rival has claimed. Nothing
// is trimmed before an append of this owner was acknowledged in it.
func TestNothingIsTrimmedBetweenAnUnknownOutcomeAndTheNextAppend(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	fillToSnapshot(t, w)
	markAll(t, w)
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	w.unknown = errors.New("some")
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	info, err := w.Log().Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if first := trim(t, w, math.MaxUint64); first != info.First || w.State().SnapshotFirst <= info.First {
		t.Fatalf("trimmed up to %d without an append, the log begins at %d, its snapshot at %d", first, info.First,
			w.State().SnapshotFirst)
	}
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	if first := trim(t, w, math.MaxUint64); first != w.State().SnapshotFirst {
		t.Fatalf("trimmed up to %d after an append, want %d", first, w.State().SnapshotFirst)
	}
}

// A state too large for one message goes into several; a crash between them leaves the snapshot
// before.
func TestSnapshotInParts(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	fillToSnapshot(t, w)
	before := w.State().SnapshotFirst
	parts, err := w.State().Snapshot(100)
	if err != nil || len(parts) < 2 {
		t.Fatalf("%d parts: %v", len(parts), err)
	}
	first := w.State().Seq + 1
	for i, p := range parts {
		if i > 0 {
			p.Body.First = first
			if s := fold(t, w.Log()); s.SnapshotFirst != before {
				t.Fatalf("snapshot at %d after %d of %d parts", s.SnapshotFirst, i, len(parts))
			}
		}
		if _, err := w.append(ctx, p.Body, p.Data); err != nil {
			t.Fatal(err)
		}
	}
	s := fold(t, w.Log())
	if s.SnapshotFirst != first {
		t.Fatalf("snapshot at %d, want %d", s.SnapshotFirst, first)
	}
	sameState(t, s, w.State())
}
