package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// newer makes this build one of the next format until the test ends, and returns the format before
// it.
func newer(t testing.TB) (older int) {
	t.Helper()
	older = checkpoint.Format
	checkpoint.Format++
	t.Cleanup(func() { checkpoint.Format = older })
	return older
}

// olderLog makes a log as a build of an older format leaves it: claimed, started and released.
func olderLog(t testing.TB, format int) *Log {
	t.Helper()
	l := createLog(t, embeddedQueue(t))
	w, err := l.Claim(testContext(t), ClaimOptions{Owner: "older", Format: format})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, w, &checkpoint.Start{
		Stream: stream, Date: second, Shards: []checkpoint.ShardSeen{{ID: "shard-1"}},
	}, nil)
	if err := w.Release(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNewLogBeginsAtTheNewestFormat(t *testing.T) {
	w := owned(t, embeddedQueue(t))
	if s := fold(t, w.Log()); s.Format != checkpoint.Format {
		t.Errorf("format %d", s.Format)
	}
}

// TestNewLogBeginsInTheFormatOfItsPipeline: an older replicator beside this one can take the log
// over.
func TestNewLogBeginsInTheFormatOfItsPipeline(t *testing.T) {
	older := newer(t)
	q := embeddedQueue(t)
	for _, format := range []int{older, checkpoint.Format} {
		l, err := q.CreateLog(testContext(t), fmt.Sprint("Orders-", format), "t0ken")
		if err != nil {
			t.Fatal(err)
		}
		for _, owner := range []string{"a", "b"} {
			w, err := l.Claim(testContext(t), ClaimOptions{Owner: owner, Format: format})
			if err != nil {
				t.Fatal(err)
			}
			if s := w.State(); s.Format != format || s.Reads != checkpoint.Format {
				t.Errorf("log of format %d, claimed by %s: format %d, reads %d", format, owner, s.Format, s.Reads)
			}
			if err := w.Release(testContext(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Rule 11: the log of an older build keeps its format until an operator raises it with `replicator
// upgrade`.
func TestLogIsRaisedOnlyByUpgrade(t *testing.T) {
	ctx, older := testContext(t), newer(t)
	l := olderLog(t, older)
	w := claim(t, l, "newer")
	appendPage(t, w, 5, 100)
	if s := fold(t, l); s.Format != older {
		t.Fatalf("format %d without an upgrade", s.Format)
	}
	if err := w.Upgrade(ctx, checkpoint.Format); err != nil {
		t.Fatal(err)
	}
	raised := w.State().Seq
	if err := w.Upgrade(ctx, checkpoint.Format); err != nil || w.State().Seq != raised {
		t.Errorf("upgraded again: %v, entry %d after %d", err, w.State().Seq, raised)
	}
	appendPage(t, w, 5, 100)
	s := fold(t, l)
	if s.Format != checkpoint.Format {
		t.Errorf("format %d after the upgrade", s.Format)
	}
	private := cmpopts.IgnoreUnexported(checkpoint.State{}, checkpoint.Chain{}, checkpoint.Shard{})
	if d := cmp.Diff(w.State(), s, private); d != "" {
		t.Errorf("the writer's state and the stored one: %s", d)
	}
	if d := cmp.Diff(sequences(1, 10), readSeqs(t, l, s.Seq)); d != "" {
		t.Error(d)
	}
}

// An upgrade with an unknown outcome is not stored here: Recover finds that, and the next Upgrade
// stores it.
func TestUpgradeWithUnknownOutcomeIsRepeated(t *testing.T) {
	l := olderLog(t, newer(t))
	w := claim(t, l, "newer")
	pause := true
	if _, err := l.AppendControl(testContext(t), &checkpoint.Control{Pause: &pause}); err != nil {
		t.Fatal(err)
	}
	if err := w.Upgrade(testContext(t), checkpoint.Format); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("upgrade after a control entry: %v, want an unknown outcome", err)
	}
	if err := w.Recover(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := w.Upgrade(testContext(t), checkpoint.Format); err != nil || fold(t, l).Format != checkpoint.Format {
		t.Errorf("%v, format %d", err, fold(t, l).Format)
	}
	gone, cancel := context.WithCancel(testContext(t))
	cancel()
	if err := w.Upgrade(gone, checkpoint.Format); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// A NATS server with its default configuration takes messages of 1 MiB. The test lists 1,600 open
// shards with six generations before them, and 10,000 with seven: about a day of shards that rotate
// every three hours.
func TestManyShardsStartOnAServerWithItsDefaultPayload(t *testing.T) {
	o := &externalServer{t: t, dir: t.TempDir(), port: reservePorts(t, 1)[0], payload: 1 << 20}
	o.start()
	t.Cleanup(o.stop)
	q := connectTo(t, o.addr(), nil)
	for _, size := range []struct{ gens, width int }{{7, 1_600}, {8, 10_000}} {
		l, err := q.CreateLog(testContext(t), fmt.Sprint("Orders-", size.width), "t0ken")
		if err != nil {
			t.Fatal(err)
		}
		w := claim(t, l, "a")
		start := &checkpoint.Start{Stream: stream, Date: second}
		name := func(gen, i int) string { return fmt.Sprintf("shardId-%020d-%08d", gen, i) }
		for gen := range size.gens {
			for i := range size.width {
				x := checkpoint.ShardSeen{ID: name(gen, i), Closed: gen < size.gens-1}
				if gen > 0 {
					x.Parent = name(gen-1, i)
				}
				start.Shards = append(start.Shards, x)
			}
		}
		if _, err := w.Append(testContext(t), start, nil); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d shards in one entry: %v", len(start.Shards), err)
		}
		for _, part := range checkpoint.SplitStart(start, checkpoint.ListingPartBytes) {
			mustAppend(t, w, part, nil)
		}
		if err := w.Release(testContext(t)); err != nil {
			t.Fatal(err)
		}
		s := claim(t, l, "b").State()
		if _, roots, waiting, _ := s.ShardCounts(); s.LiveStream() == nil || roots != size.width ||
			roots+waiting != len(start.Shards) {
			t.Errorf("%d of %d shards, %d to be read, %d wait", len(s.Shards), len(start.Shards), roots, waiting)
		}
	}
}
