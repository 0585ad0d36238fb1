package queue

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// lagging makes a copy of a stream as it is now, which stands for a replica that lags behind its
// leader.
func lagging(t *testing.T, q *Queue, name string) (copied string) {
	t.Helper()
	ctx := testContext(t)
	st, err := q.conn.JS.Stream(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	state := st.CachedInfo().State
	copied = "LAGGING_" + name
	if _, err := q.conn.JS.CreateStream(ctx, jetstream.StreamConfig{
		Name: copied, Subjects: []string{copied}, Storage: jetstream.MemoryStorage, FirstSeq: state.FirstSeq,
	}); err != nil {
		t.Fatal(err)
	}
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := q.conn.GetMessage(ctx, name, conn.MessageRequest{Seq: seq})
		if err != nil {
			t.Fatal(err)
		}
		ack, err := q.conn.JS.PublishMsg(ctx, &nats.Msg{Subject: copied, Data: m.Data})
		if err != nil || ack.Sequence != seq {
			t.Fatalf("entry %d is stored at %v: %v", seq, ack, err)
		}
	}
	return copied
}

// serveFrom lets the lagging replica serve the next n consumers of its stream, and returns how many
// it served.
func serveFrom(q *Queue, copied string, n int) (served func() int) {
	used := 0
	q.conn.CreateConsumer = func(
		ctx context.Context, stream string, cfg jetstream.ConsumerConfig,
	) (jetstream.Consumer, error) {
		if "LAGGING_"+stream == copied && used < n {
			used++
			stream = copied
		}
		return q.conn.JS.CreateConsumer(ctx, stream, cfg)
	}
	return func() int { return used }
}

// A consumer runs on a replica that has not caught up. The fold does not end where that replica
// does, because an entry appended to the older state would fork the log.
func TestFoldOnALaggingReplicaGoesOnToTheLeadersEnd(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	appendPage(t, w, 5, 10)
	copied := lagging(t, q, w.Log().name)
	for range 4 {
		appendPage(t, w, 5, 10)
	}
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	l, want := w.Log(), *w.State()

	served := serveFrom(q, copied, 3)
	sameState(t, fold(t, l), &want)
	if served() != 3 {
		t.Fatalf("the lagging replica served %d consumers, want 3", served())
	}
	t.Run("recover", func(t *testing.T) {
		serveFrom(q, copied, 2)
		w.unknown = errors.New("some")
		if err := w.Recover(ctx); err != nil {
			t.Fatal(err)
		}
		sameState(t, w.State(), &want)
		appendPage(t, w, 5, 10)
	})
	t.Run("control", func(t *testing.T) {
		serveFrom(q, copied, 2)
		pause := true
		if _, err := l.AppendControl(ctx, &checkpoint.Control{Pause: &pause, By: "me"}); err != nil {
			t.Fatal(err)
		}
		if s := fold(t, l); !s.Paused || s.Foreign != 0 {
			t.Fatalf("paused %v, %d foreign messages", s.Paused, s.Foreign)
		}
	})
	t.Run("claim", func(t *testing.T) {
		serveFrom(q, copied, 2)
		rival := claim(t, l, "b")
		appendPage(t, rival, 5, 10)
		if d := cmp.Diff(sequences(1, 35), readSeqs(t, l, rival.State().Seq)); d != "" {
			t.Fatal(d)
		}
	})
}

// The newest message of the replica differs from the leader's message of the same sequence.
func TestFoldOfAnotherHistoryIsReadAgain(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	appendPage(t, w, 5, 10)
	copied := lagging(t, q, w.Log().name)
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	if _, err := q.conn.JS.Publish(ctx, copied, []byte("another last entry")); err != nil {
		t.Fatal(err)
	}
	served := serveFrom(q, copied, 2)
	sameState(t, fold(t, w.Log()), w.State())
	if served() != 2 {
		t.Fatalf("the other history served %d consumers, want 2", served())
	}
}

// The newest message is not an entry: the fold compares it with the leader's and ends there without
// an error.
func TestFoldEndsAtAStrayMessage(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	copied := lagging(t, q, w.Log().name)
	appendPage(t, w, 5, 10)
	if _, err := q.conn.JS.Publish(ctx, w.Log().subject.Entry, []byte("stray")); err != nil {
		t.Fatal(err)
	}
	serveFrom(q, copied, 1)
	if s := fold(t, w.Log()); s.Foreign != 1 || s.Changes != 5 || s.Seq != w.State().Seq+1 {
		t.Fatalf("%d foreign messages, %d changes, ends at %d", s.Foreign, s.Changes, s.Seq)
	}
}

// A reader with EndAt gets to the end even if the last messages are not entries or are lost, and
// the replica lags.
func TestReadingOnceEndsWhereTheLogDoes(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *Writer){
		"stray message": func(t *testing.T, w *Writer) {
			if _, err := w.Log().q.conn.JS.Publish(testContext(t), w.Log().subject.Entry, []byte("stray")); err != nil {
				t.Fatal(err)
			}
		},
		"lost tail": func(t *testing.T, w *Writer) {
			beat := mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
			if err := w.Log().stream.DeleteMsg(testContext(t), beat); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			q := embeddedQueue(t)
			w := ownedDamageable(t, q)
			copied := lagging(t, q, w.Log().name)
			last := appendPage(t, w, 5, 10)
			spoil(t, w)
			info, err := w.Log().Info(ctx)
			if err != nil {
				t.Fatal(err)
			}
			serveFrom(q, copied, 1)
			r, err := w.Log().Read(ctx, 0, checkpoint.Hash{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close(ctx)
			r.EndAt(info.Last)
			var read uint64
			for err == nil {
				var seq uint64
				if seq, _, err = r.Next(ctx); err == nil {
					read = seq
				}
			}
			if !errors.Is(err, io.EOF) || read != last {
				t.Fatalf("read up to entry %d, want %d: %v", read, last, err)
			}
		})
	}
}

// The owner appends a snapshot and trims while another process folds from the snapshot before: that
// fold begins again.
func TestFoldGoesOnWhenTheLogIsTrimmedMeanwhile(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	appendPage(t, w, 5, 10)
	trimmed := false
	q.conn.CreateConsumer = func(
		ctx context.Context, stream string, cfg jetstream.ConsumerConfig,
	) (jetstream.Consumer, error) {
		if !trimmed {
			trimmed = true
			appendPage(t, w, 5, 10)
			if err := w.snapshot(ctx, true); err != nil {
				t.Error(err)
			}
			markAll(t, w)
			mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
			if first := trim(t, w, math.MaxUint64); first != w.State().SnapshotFirst {
				t.Errorf("trimmed up to %d", first)
			}
		}
		return q.conn.JS.CreateConsumer(ctx, stream, cfg)
	}
	s, err := w.Log().Fold(ctx)
	if err != nil || !trimmed {
		t.Fatal(err)
	}
	sameState(t, s, w.State())
}

// lossy is a consumer whose third message is dropped in the client, as happens to a slow reader.
type lossy struct{ jetstream.Consumer }

func (c lossy) Messages(opts ...jetstream.PullMessagesOpt) (jetstream.MessagesContext, error) {
	m, err := c.Consumer.Messages(opts...)
	return &lossyMessages{MessagesContext: m}, err
}

type lossyMessages struct {
	jetstream.MessagesContext
	n int
}

func (m *lossyMessages) Next(opts ...jetstream.NextOpt) (jetstream.Msg, error) {
	if m.n++; m.n == 3 {
		if _, err := m.MessagesContext.Next(opts...); err != nil {
			return nil, err
		}
	}
	return m.MessagesContext.Next(opts...)
}

// Messages that a slow reader dropped are read again: they are not a gap.
func TestDroppedMessagesAreReadAgain(t *testing.T) {
	q := embeddedQueue(t)
	w := owned(t, q)
	for range 5 {
		appendPage(t, w, 5, 10)
	}
	lossies := 0
	q.conn.CreateConsumer = func(
		ctx context.Context, stream string, cfg jetstream.ConsumerConfig,
	) (jetstream.Consumer, error) {
		c, err := q.conn.JS.CreateConsumer(ctx, stream, cfg)
		if lossies++; lossies%2 == 0 || err != nil {
			return c, err
		}
		return lossy{c}, nil
	}
	sameState(t, fold(t, w.Log()), w.State())
	if lossies = 0; !cmp.Equal(sequences(1, 25), readSeqs(t, w.Log(), w.State().Seq)) || lossies < 2 {
		t.Fatalf("read something else over %d consumers", lossies)
	}
}

// Dead letters are read to the leader's end as well, and each once.
func TestLettersOnALaggingReplicaAreAllListed(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	d := openLetters(t, q)
	now := time.Unix(1_790_000_000, 0).UTC()
	var want []string
	for i, c := range changesOf(t, 6) {
		letter := deadletter.New("Orders", "bigtable", c, "mapping", "no rule", now)
		if err := d.Put(ctx, letter); err != nil {
			t.Fatal(err)
		}
		want = append(want, letter.ID)
		if i == 2 {
			serveFrom(q, lagging(t, q, streamName(q.opts.Pipeline, "Orders")+"_letters"), 2)
		}
	}
	moved := false
	var got []string
	for letter, err := range d.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, letter.ID)
		if moved {
			continue
		}
		moved = true
		for _, i := range []int{0, 4} { // the one that we hold, and one that comes
			if err := d.RecordRetry(ctx, want[i], deadletter.Retried{Code: "mapping", Reason: "still", At: now}); err != nil {
				t.Fatal(err)
			}
		}
	}
	want = []string{want[0], want[1], want[2], want[3], want[5], want[4]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

// A stream on which an operator has set AllowDirect is still asked through its leader.
func TestLeaderAnswersAlsoWhereDirectReadsAreAllowed(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	config := w.Log().stream.CachedInfo().Config
	config.AllowDirect = true
	if _, err := q.conn.JS.UpdateStream(ctx, config); err != nil {
		t.Fatal(err)
	}
	direct, err := q.conn.NC.SubscribeSync("$JS.API.DIRECT.GET.>")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Log().Info(ctx); err != nil { // the client library knows now that direct reads are allowed
		t.Fatal(err)
	}
	sameState(t, fold(t, w.Log()), w.State())
	if n, _, _ := direct.Pending(); n != 0 {
		t.Fatal("a message was asked of any replica")
	}
}

// The same in a cluster: one of three servers was away, comes back, and serves consumers while it
// catches up. Every fold is the leader's, and what the owner appends after it counts.
func TestFoldWhileAReplicaCatchesUp(t *testing.T) {
	long(t, "electing a leader takes seconds")
	ctx := testContext(t)
	c := startCluster(t)
	q := connectTo(t, c.addr(), func(o *Options) { o.Replicas = 3 })
	w := claimIn(t, q)
	put := func(body any, data []byte) {
		t.Helper()
		if err := appendAndRecover(ctx, w, body, data); err != nil {
			t.Fatal(err)
		}
	}
	put(&checkpoint.Start{Stream: stream, Date: second, Shards: []checkpoint.ShardSeen{{ID: "shard-1"}}}, nil)
	late := c.follower(t, q, w.Log())
	c.stop(late)
	for n := range 300 {
		put(&checkpoint.Beat{Date: second + change.Millis(n)}, nil)
	}
	// The consumers go to the late server wherever it has opened its copy.
	onLate := 0
	q.conn.CreateConsumer = func(
		ctx context.Context, stream string, cfg jetstream.ConsumerConfig,
	) (jetstream.Consumer, error) {
		for try := 0; ; try++ {
			cons, err := q.conn.JS.CreateConsumer(ctx, stream, cfg)
			if err != nil || cons.CachedInfo().Cluster.Leader == late || try == 20 {
				if err == nil && cons.CachedInfo().Cluster.Leader == late {
					onLate++
				}
				return cons, err
			}
			if err := q.conn.JS.DeleteConsumer(ctx, stream, cons.CachedInfo().Name); err != nil {
				return nil, err
			}
		}
	}
	c.start(t, late)
	want := *w.State()
	for onLate < 10 {
		sameState(t, fold(t, w.Log()), &want)
	}
	w.unknown = errors.New("some")
	for range 5 {
		if err := conn.Retry(ctx, func() error { return w.Recover(ctx) }); err != nil {
			t.Fatal(err)
		}
		appendPage(t, w, 5, 10)
	}
	s := fold(t, w.Log())
	if s.Foreign != 0 || s.Changes != 25 {
		t.Fatalf("%d foreign messages, %d changes", s.Foreign, s.Changes)
	}
}
