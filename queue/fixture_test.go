package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

const (
	stream = "arn:aws:dynamodb:eu-west-1:1:table/Orders/stream/2026-01-01T00:00:00.000"
	second = int64(1_790_000_000_000)
)

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
	err := retry(ctx, func() (err error) { // a server may have just gone, or be electing
		s, err = l.Fold(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pageOf makes a page of n records after what the state holds of shard-1, each with images of size bytes.
func pageOf(t testing.TB, s *checkpoint.State, n, size int) *change.Page {
	t.Helper()
	sh := s.Shards["shard-1"]
	return pageAfter(t, sh.Pos, sh.Clock, n, size)
}

func pageAfter(t testing.TB, from change.Position, clock int64, n, size int) *change.Page {
	t.Helper()
	next := 1
	if from.After != "" {
		if _, err := fmt.Sscanf(from.After, "1%020d", &next); err != nil {
			t.Fatal(err)
		}
		next++
	}
	rng := rand.New(rand.NewPCG(uint64(next), 1))
	var b strings.Builder
	b.WriteString(`{"Records":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":%d,"Keys":{"pk":{"S":"item-%d"}},"NewImage":{"pk":{"S":"item-%d"},"v":{"S":"%s"}},"OldImage":{"pk":{"S":"item-%d"},"v":{"S":"%s"}},"SequenceNumber":"%s","SizeBytes":%d,"StreamViewType":"NEW_AND_OLD_IMAGES"},"eventID":"e%d","eventName":"MODIFY","eventSource":"aws:dynamodb","eventVersion":"1.1"}`,
			second/1000, (next+i)%97, (next+i)%97, text(rng, size), (next+i)%97, text(rng, size), sequence(next+i), size, next+i)
	}
	b.WriteString(`]}`)
	recs, _, err := change.ScanPage([]byte(b.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &change.Page{Feed: change.Feed{Stream: stream, Shard: "shard-1"}, From: from, To: from, ClockFrom: clock, Clock: clock, Date: second, Records: recs, Bytes: b.Len()}
	tick := change.Clock(clock)
	for i := range recs {
		recs[i].Version = tick.Next(recs[i].Created)
		recs[i].KeyHash = change.HashKey(recs[i].Keys)
		p.To, p.Clock = change.Position{After: string(recs[i].SequenceNumber)}, recs[i].Version
	}
	return p
}

func sequence(n int) string { return fmt.Sprintf("1%020d", n) }

const letters = "abcdefghijklmnopqrstuvwxyz0123456789"

// text has about the entropy of real attributes: half random, half repeated words.
func text(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		if i/16%2 == 0 {
			b[i] = letters[rng.IntN(len(letters))]
		} else {
			b[i] = "electrical-goods"[i%16]
		}
	}
	return string(b)
}

func mustPack(t testing.TB, max int, pages ...*change.Page) []Packed {
	t.Helper()
	frames, err := PackFrame(pages, max)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// appendPage puts n records into the log and returns the sequence of the last frame.
func appendPage(t testing.TB, w *Writer, n, size int) (seq uint64) {
	t.Helper()
	for _, f := range mustPack(t, MaxPayload, pageOf(t, w.State(), n, size)) {
		seq = mustAppend(t, w, f.Body, f.Data)
	}
	return seq
}

// readSeqs reads the log from the start up to entry last and returns the sequence numbers of all changes.
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
			if buf, err = UnpackFrame(e, buf, func(_ *checkpoint.PageHead, c *change.Change) error {
				seqs = append(seqs, c.SequenceNumber)
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
		seqs = append(seqs, sequence(i))
	}
	return seqs
}
