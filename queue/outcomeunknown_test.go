package queue

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/internal/testpage"
)

// Attack 15 of test/attacklist_test.go: an append is stored and its acknowledgement lost. What was
// stored counts, once.
func TestLostAcknowledgementIsResolvedFromTheLog(t *testing.T) {
	ctx := testContext(t)
	srv := startExternal(t)
	p := startProxy(t, srv.addr())
	q := connectTo(t, p.Addr().String(), nil)
	w := owned(t, q)
	appendPage(t, w, 5, 10)
	p.setDeaf(true)
	frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 5, 10))[0]
	withShortAckTimeout(q, func() {
		if _, err := w.Append(ctx, frame.Body, frame.Data); !errors.Is(err, ErrOutcomeUnknown) {
			t.Fatalf("append without an answer: %v, want an unknown outcome", err)
		}
	})
	if _, err := w.Append(ctx, frame.Body, frame.Data); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("append while the outcome is unknown: %v, want an unknown outcome", err)
	}
	awaitStored(t, srv, w.State().Seq+1)
	before := q.conn.Connections.Load()
	p.setDeaf(false)
	awaitReconnected(t, q, before)
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if got, want := w.State().Shards["shard-1"].Pos.After, testpage.Sequence(10); got != want {
		t.Fatalf("read up to %s, stored is %s", got, want)
	}
	appendPage(t, w, 5, 10)
	if d := cmp.Diff(sequences(1, 15), readSeqs(t, w.Log(), w.State().Seq)); d != "" {
		t.Fatal(d)
	}
}

// awaitStored waits until a server that answers nobody has stored the entry at a sequence.
func awaitStored(t *testing.T, srv *externalServer, seq uint64) {
	t.Helper()
	ctx := testContext(t)
	l, err := connectTo(t, srv.addr(), nil).Log(ctx, "Orders")
	for info := (Info{}); err == nil && info.Last < seq; info, err = l.Info(ctx) {
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The acknowledgement comes too late, on a connection that never broke: the writer appends nothing
// before Recover.
func TestLateAcknowledgementIsIgnored(t *testing.T) {
	ctx := testContext(t)
	p := startProxy(t, startExternal(t).addr())
	w := owned(t, connectTo(t, p.Addr().String(), nil))
	p.hold()
	withShortAckTimeout(w.Log().q, func() {
		if _, err := w.Append(ctx, &checkpoint.Beat{Date: second}, nil); !errors.Is(err, ErrOutcomeUnknown) {
			t.Fatalf("append without an answer in time: %v, want an unknown outcome", err)
		}
	})
	p.releaseHeld()
	if _, err := w.Append(ctx, &checkpoint.Beat{Date: second}, nil); !errors.Is(err, ErrOutcomeUnknown) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("append while the outcome is unknown: %v, want an unknown outcome for the same reason", err)
	}
	info, err := w.Log().Info(ctx)
	if err != nil || info.Last != w.State().Seq+1 {
		t.Fatalf("log ends at %d, want one entry after %d: %v", info.Last, w.State().Seq, err)
	}
	if err := w.Recover(ctx); err != nil || w.State().Seq != info.Last {
		t.Fatalf("recovered up to %d, want %d: %v", w.State().Seq, info.Last, err)
	}
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
}

// reconnecting is a client that loses its connection after the server has stored an entry, and is
// back with another one before the acknowledgement is looked at.
type reconnecting struct {
	jetstream.JetStream
	q *Queue
}

func (r reconnecting) PublishMsg(
	ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt,
) (*jetstream.PubAck, error) {
	ack, err := r.JetStream.PublishMsg(ctx, m, opts...)
	r.q.conn.Connections.Add(1)
	return ack, err
}

// Rule 4: after a reconnect it is unknown what the server holds, even for an append that was
// acknowledged before.
func TestAcknowledgementAcrossAReconnectIsNotTrusted(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	w := owned(t, q)
	before := *w.State()
	usual := q.conn.JS
	q.conn.JS = reconnecting{q.conn.JS, q}
	if _, err := w.Append(ctx, &checkpoint.Beat{Date: second}, nil); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("append over a reconnect: %v, want an unknown outcome", err)
	}
	if q.conn.JS = usual; w.State().Seq != before.Seq {
		t.Fatal("the entry is part of the state before it was read")
	}
	if err := w.Recover(ctx); err != nil || w.State().Seq != before.Seq+1 {
		t.Fatalf("recovered up to %d, want %d: %v", w.State().Seq, before.Seq+1, err)
	}
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
}

// The server's comparison of sequences by itself, without that of ids.
func TestStaleSequenceIsRefused(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	last := w.State().Seq
	for _, stale := range []uint64{0, last - 1, last + 1} {
		_, err := w.Log().publish(ctx, checkpoint.KindBeat, []byte("x"), stale, "", "x")
		if conn.OutcomeOf(err) != conn.Fenced {
			t.Errorf("publish after %d instead of %d: %v", stale, last, err)
		}
	}
	if info, err := w.Log().Info(ctx); err != nil || info.Last != last {
		t.Fatalf("log ends at %d, want %d: %v", info.Last, last, err)
	}
}

// The server treats two attempts with one message id as the same entry. Attempts of this package
// never share an id; if they did, the second must not count as stored.
func TestDuplicateIsNotAnAcknowledgement(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	last, lastID := w.State().Seq, w.folded.lastID
	if _, err := w.Log().publish(ctx, checkpoint.KindBeat, []byte("early"), last, lastID, "x"); err != nil {
		t.Fatal(err)
	}
	_, err := w.Log().publish(ctx, checkpoint.KindBeat, []byte("late"), last, lastID, "x")
	if conn.OutcomeOf(err) == conn.Stored {
		t.Fatal("the acknowledgement of one entry counted for another")
	}
	if a, b := w.Log().q.messageID(w.nonce), w.Log().q.messageID(w.nonce); a == b {
		t.Fatalf("two attempts have the id %s", a)
	}
}

// An append is never sent because the server is stopped: after Recover the entry is not part of the
// state.
func TestUnsentAppendIsResolvedFromTheLog(t *testing.T) {
	ctx := testContext(t)
	srv := startExternal(t)
	w := owned(t, connectTo(t, srv.addr(), nil))
	appendPage(t, w, 5, 10)
	srv.restart(w.Log().q, func() {
		frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 5, 10))[0]
		withShortAckTimeout(w.Log().q, func() {
			if _, err := w.Append(ctx, frame.Body, frame.Data); !errors.Is(err, ErrOutcomeUnknown) {
				t.Fatalf("append to a dead server: %v, want an unknown outcome", err)
			}
		})
	})
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if got, want := w.State().Shards["shard-1"].Pos.After, testpage.Sequence(5); got != want {
		t.Fatalf("read up to %s, stored is %s", got, want)
	}
	appendPage(t, w, 5, 10)
	if d := cmp.Diff(sequences(1, 10), readSeqs(t, w.Log(), w.State().Seq)); d != "" {
		t.Fatal(d)
	}
}

// A reader goes on after a restart of the server, without an error.
func TestReaderSurvivesARestartOfNATS(t *testing.T) {
	ctx := testContext(t)
	srv := startExternal(t)
	q := connectTo(t, srv.addr(), nil)
	w := owned(t, q)
	appendPage(t, w, 5, 10)
	r, err := w.Log().Read(ctx, 0, checkpoint.Hash{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	var kinds []byte
	read := func(n int) {
		for range n {
			_, e, err := r.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, byte(e.Kind))
		}
	}
	read(3)
	srv.stop()
	for range 2 {
		short, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
		if _, _, err := r.Next(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("read without a server: %v", err)
		}
		cancel()
	}
	before := q.conn.Connections.Load()
	srv.start()
	awaitReconnected(t, q, before)
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, w, &checkpoint.Beat{Date: second}, nil)
	read(1)
	if got, want := string(kinds), "csfb"; got != want {
		t.Fatalf("read %s, want %s", got, want)
	}
}

// Attack 1 of test/attacklist_test.go: a writer pauses before an append while a rival finishes the
// shard and trims the log.
func TestPausedWriterStoresNothingAfterRivalTrimmed(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	rival := claim(t, w.Log(), "b")
	last := appendPage(t, rival, 5, 10)
	hash := rival.State().Hash
	mustAppend(t, rival, &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{"bigtable": {Seq: last, Hash: hash}}}, nil)
	if err := rival.Release(ctx); err != nil { // with a snapshot
		t.Fatal(err)
	}
	rival = claim(t, w.Log(), "b")
	mustAppend(t, rival, &checkpoint.Beat{Date: second}, nil)
	first, err := rival.Trim(ctx, math.MaxUint64)
	if err != nil || first != rival.State().LowMark()+1 {
		t.Fatalf("trimmed up to %d, mark at %d: %v", first, rival.State().LowMark(), err)
	}
	before := fold(t, w.Log())
	frame := mustPack(t, conn.MaxPayload, pageOf(t, w.State(), 5, 10))[0]
	if _, err := w.Append(ctx, frame.Body, frame.Data); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("append of the paused writer: %v, want an unknown outcome", err)
	}
	if err := w.Recover(ctx); !errors.Is(err, ErrLost) {
		t.Fatalf("recover of the paused writer: %v, want lost", err)
	}
	sameState(t, fold(t, w.Log()), before)
}

// Attack 28 of test/attacklist_test.go: the store is put back to an older copy and a rival fills it
// up to the very number that the old owner knows. No entry of the rival is skipped, and no entry of
// the old owner is stored.
func TestRestoredStoreFilledToTheSameNumber(t *testing.T) {
	ctx := testContext(t)
	srv := startExternal(t)
	w := owned(t, connectTo(t, srv.addr(), nil))
	appendPage(t, w, 3, 10)
	var kept string
	srv.restart(w.Log().q, func() { kept = srv.copyStore() })
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	appendPage(t, w, 3, 10)
	appendPage(t, w, 3, 10)
	mark := checkpoint.Mark{Seq: w.State().Seq, Hash: w.State().Hash}
	srv.restart(w.Log().q, func() { srv.restore(kept) })
	rivals, err := connectTo(t, srv.addr(), nil).Log(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	rival := claim(t, rivals, "b")
	appendPage(t, rival, 4, 10)
	if rival.State().Seq != mark.Seq {
		t.Fatalf("the rival is at %d, the old owner at %d", rival.State().Seq, mark.Seq)
	}

	t.Run("reader from the old mark", func(t *testing.T) {
		if _, err := w.Log().Read(ctx, mark.Seq+1, mark.Hash); !errors.Is(err, ErrChain) {
			t.Fatalf("read from the mark of a lost history: %v", err)
		}
	})
	t.Run("writer that noticed nothing", func(t *testing.T) {
		w.folded.connection = w.Log().q.conn.Connections.Load() // as behind a proxy that reconnects by itself
		if _, err := w.append(ctx, &checkpoint.Beat{Date: second}, nil); !errors.Is(err, ErrOutcomeUnknown) {
			t.Fatalf("append to a lost history: %v, want an unknown outcome", err)
		}
		if err := w.Recover(ctx); !errors.Is(err, ErrLost) {
			t.Fatalf("recover: %v, want lost", err)
		}
	})
	appendPage(t, rival, 3, 10)
	if d := cmp.Diff(sequences(1, 10), readSeqs(t, rivals, rival.State().Seq)); d != "" {
		t.Fatal(d)
	}
	if s := fold(t, rivals); s.Foreign != 0 {
		t.Fatalf("%d messages of the old owner were stored", s.Foreign)
	}
}

// If the server does not compare ids, an entry that continues a lost history is stored, but has no
// effect.
func TestEntryOfALostHistoryHasNoEffect(t *testing.T) {
	ctx := testContext(t)
	w := owned(t, embeddedQueue(t))
	appendPage(t, w, 3, 10)
	l, s := w.Log(), w.State()
	frame := mustPack(t, conn.MaxPayload, pageOf(t, s, 3, 20))[0]
	for _, e := range []checkpoint.Entry{
		{Body: frame.Body, Data: frame.Data}, {Body: &checkpoint.Beat{}},
		{Body: &checkpoint.Snapshot{Parts: 1}, Data: snapshotData(t)},
	} {
		kind := checkpoint.KindOf(e.Body)
		e.Kind, e.Epoch, e.Nonce, e.Prev = kind, w.epoch, w.nonce, checkpoint.Hash{7}
		msg, err := checkpoint.Encode(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.fold(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.publish(ctx, kind, msg, f.state.Seq, f.lastID, kind.String()); err != nil {
			t.Fatal(err)
		}
	}
	got := fold(t, l)
	if got.Foreign != 3 || got.Hash != s.Hash || got.Changes != 3 {
		t.Fatalf("%d foreign, %d changes", got.Foreign, got.Changes)
	}
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	appendPage(t, w, 3, 10)
	if d := cmp.Diff(sequences(1, 6), readSeqs(t, l, w.State().Seq)); d != "" {
		t.Fatal(d)
	}
}

func snapshotData(t *testing.T) []byte {
	parts, err := checkpoint.NewState().Snapshot(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return parts[0].Data
}
