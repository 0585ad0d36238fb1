package queue

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/queue/internal/testpage"
)

const (
	stream = testpage.Stream
	second = testpage.Second
)

// long skips the test with -short. why says what it costs.
func long(t *testing.T, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("long: %s; make test runs it", why)
	}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func logger(t testing.TB) *zap.Logger {
	return zaptest.NewLogger(t, zaptest.Level(zap.ErrorLevel))
}

// embeddedIn opens the embedded queue in dir, with short waits.
func embeddedIn(t testing.TB, dir string, edit func(*Options)) *Queue {
	t.Helper()
	o := Options{
		Pipeline: "shop", Dir: dir, MaxBytes: 256 << 20, LettersMaxBytes: 16 << 20, ReplayWindow: -1,
		AckTimeout: 10 * time.Second, IdleCheck: 50 * time.Millisecond,
	}
	if edit != nil {
		edit(&o)
	}
	q, err := Open(testContext(t), o, logger(t), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

func embeddedQueue(t testing.TB) *Queue { return embeddedIn(t, t.TempDir(), nil) }

func createLog(t testing.TB, q *Queue) *Log {
	t.Helper()
	l, err := q.CreateLog(testContext(t), "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func claim(t testing.TB, l *Log, owner string) *Writer {
	t.Helper()
	w, err := l.Claim(testContext(t), ClaimOptions{Owner: owner, TTL: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// owned claims a new log and starts one shard in it.
func owned(t testing.TB, q *Queue) *Writer {
	t.Helper()
	w := claim(t, createLog(t, q), "a")
	mustAppend(t, w, &checkpoint.Start{Stream: stream, Date: second, Shards: []checkpoint.ShardSeen{{ID: "shard-1"}}}, nil)
	return w
}

func mustAppend(t testing.TB, w *Writer, body any, data []byte) uint64 {
	t.Helper()
	seq, err := w.Append(testContext(t), body, data)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func fold(t testing.TB, l *Log) *checkpoint.State {
	t.Helper()
	ctx := testContext(t)
	var s *checkpoint.State
	err := conn.Retry(ctx, func() (err error) { // a server may have just stopped, or its cluster may be electing
		s, err = l.Fold(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pageOf makes a page of n records after what the state holds of shard-1, each with images of size
// bytes.
func pageOf(t testing.TB, s *checkpoint.State, n, size int) *change.Page {
	t.Helper()
	sh := s.Shards["shard-1"]
	return testpage.After(t, sh.Pos, sh.Clock, n, size)
}

func mustPack(t testing.TB, max int, pages ...*change.Page) []frame.Packed {
	t.Helper()
	frames, err := frame.Pack(pages, max)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// appendPage puts n records into the log and returns the sequence of the last frame.
func appendPage(t testing.TB, w *Writer, n, size int) (seq uint64) {
	t.Helper()
	for _, f := range mustPack(t, conn.MaxPayload, pageOf(t, w.State(), n, size)) {
		seq = mustAppend(t, w, f.Body, f.Data)
	}
	return seq
}

// readSeqs reads the log from the start up to entry last and returns the sequence numbers of all
// changes.
func readSeqs(t testing.TB, l *Log, last uint64) (seqs []string) {
	t.Helper()
	ctx := testContext(t)
	r, err := l.Read(ctx, 0, checkpoint.Hash{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	var buf []byte
	for {
		seq, e, err := r.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == checkpoint.KindFrame {
			if buf, err = frame.Unpack(e, buf, func(_ *checkpoint.PageHead, c *change.Change) error {
				seqs = append(seqs, string(c.SequenceNumber))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		if seq >= last {
			return seqs
		}
	}
}

func sequences(from, to int) (seqs []string) {
	for i := from; i <= to; i++ {
		seqs = append(seqs, string(testpage.Sequence(i)))
	}
	return seqs
}
