package queue

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/internal/testpage"
)

// flipByte changes one byte of a stored entry while nobody has the store open.
func flipByte(t *testing.T, dir string, entry []byte) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("%d blocks: %v", len(blocks), err)
	}
	for _, block := range blocks {
		b, err := os.ReadFile(block)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(b, entry); at >= 0 {
			b[at+len(entry)/2] ^= 0x40
			if err := os.WriteFile(block, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("the entry is in no block")
}

// logWithFlippedByte makes a log of ten pages of five changes, and flips a byte in one of them,
// counted from 0. It returns the log as the next process opens it, and the damaged entry's
// sequence.
func logWithFlippedByte(t *testing.T, page int) (*Log, uint64) {
	t.Helper()
	dir := t.TempDir()
	q := embeddedIn(t, dir, nil)
	w := owned(t, q)
	var seqs []uint64
	for range 10 {
		seqs = append(seqs, appendPage(t, w, 5, 500))
	}
	m, err := w.Log().message(testContext(t), seqs[page])
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	flipByte(t, dir, m.Data)
	l, err := embeddedIn(t, dir, nil).Log(testContext(t), "Orders")
	if err != nil {
		t.Fatal(err)
	}
	return l, seqs[page]
}

// A byte of an entry flips on disk. The server skips the entry silently; a fold must not return the
// entries before it as the whole log. Resuming accepts the loss: positions go back to before it,
// and the source is read again.
func TestFlippedByteHaltsTheLogUntilItIsResumed(t *testing.T) {
	for name, page := range map[string]int{"in the middle": 4, "in the newest entry": 9} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			l, spoilt := logWithFlippedByte(t, page)
			damage := (*DamageError)(nil)
			if _, err := l.Fold(ctx); !errors.As(err, &damage) || damage.From != spoilt || damage.To != spoilt {
				t.Fatalf("fold: %v, want damage at %d", err, spoilt)
			}
			if what := damage.Error(); !strings.Contains(what, "resume") || damage.Since.IsZero() {
				t.Errorf("the error does not name `replicator resume`: %s", what)
			}
			if _, err := l.Claim(ctx, ClaimOptions{Owner: "b"}); !errors.Is(err, ErrDamaged) {
				t.Fatalf("claim: %v, want damaged", err)
			}
			pause := true
			if _, err := l.AppendControl(ctx, &checkpoint.Control{Pause: &pause}); !errors.Is(err, ErrDamaged) {
				t.Fatalf("pause: %v, want damaged", err)
			}
			if _, err := l.AppendControl(ctx, &checkpoint.Control{Resume: true}); err != nil {
				t.Fatal(err)
			}
			w := claim(t, l, "b")
			if got, want := w.State().Shards["shard-1"].Pos.After, testpage.Sequence(5*page); got != want {
				t.Fatalf("goes on from %s, want %s", got, want)
			}
			appendPage(t, w, 70, 10)
			if d := cmp.Diff(sequences(1, 5*page+70), readSeqs(t, l, w.State().Seq)); d != "" {
				t.Fatal(d)
			}
			sameState(t, fold(t, l), w.State())
		})
	}
}

// The damage lies before the last snapshot: the state is whole, only a sink that has not applied
// the entry stops there, until it is told to go on behind it.
func TestReaderStopsAtAFlippedByte(t *testing.T) {
	ctx := testContext(t)
	dir := t.TempDir()
	q := embeddedIn(t, dir, nil)
	w := owned(t, q)
	before := *w.State()
	spoilt := appendPage(t, w, 5, 500)
	appendPage(t, w, 5, 500)
	m, err := w.Log().message(ctx, spoilt)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.snapshot(ctx, true); err != nil {
		t.Fatal(err)
	}
	want := *w.State()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	flipByte(t, dir, m.Data)
	l, err := embeddedIn(t, dir, nil).Log(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, fold(t, l), &want)
	r, err := l.Read(ctx, before.Seq+1, before.Hash)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	damage := (*DamageError)(nil)
	if seq, _, err := r.Next(ctx); !errors.As(err, &damage) || damage.From != spoilt {
		t.Fatalf("read entry %d: %v, want damage at %d", seq, err, spoilt)
	}
	r.SkipDamage(ctx, damage)
	if seq, e, err := r.Next(ctx); err != nil || seq != spoilt+1 || e.Kind != checkpoint.KindFrame {
		t.Fatalf("read entry %d behind the damage: %v, want %d", seq, err, spoilt+1)
	}
}

// A server that lost its index reads every block again, and cuts off what follows an entry that it
// cannot read. The log is shorter then, and nothing in it shows that: the owner says so.
func TestCutOffEndIsReported(t *testing.T) {
	ctx := testContext(t)
	dir := t.TempDir()
	q := embeddedIn(t, dir, nil)
	w := owned(t, q)
	appendPage(t, w, 5, 500)
	spoilt := appendPage(t, w, 5, 500)
	appendPage(t, w, 5, 500)
	m, err := w.Log().message(ctx, spoilt)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	flipByte(t, dir, m.Data)
	indexes, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs", "index.db"))
	if err != nil || len(indexes) == 0 {
		t.Fatalf("%d indexes: %v", len(indexes), err)
	}
	for _, index := range indexes {
		if err := os.Remove(index); err != nil {
			t.Fatal(err)
		}
	}
	core, lines := observer.New(zap.ErrorLevel)
	q, err = Open(ctx, Options{Pipeline: "shop", Dir: dir, MaxBytes: 256 << 20}, zap.New(core), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	l, err := q.Log(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	if w = claim(t, l, "b"); w.State().Changes != 5 {
		t.Fatalf("%d changes are left, want 5", w.State().Changes)
	}
	if n := lines.FilterMessageSnippet("cut off the end of the log").Len(); n != 1 {
		t.Fatalf("reported %d times", n)
	}
}

// The stream's leader has the damaged copy of an entry: an entry that other copies have is not
// damage.
func TestEntryThatOnlyTheLeaderCannotReadIsReadElsewhere(t *testing.T) {
	long(t, "electing a leader takes seconds")
	ctx := testContext(t)
	c := startCluster(t)
	q := connectTo(t, c.addr(), func(o *Options) { o.Replicas = 3 })
	w := claimIn(t, q)
	l := w.Log()
	mustAppend(t, w, &checkpoint.Start{Stream: stream, Date: second, Shards: []checkpoint.ShardSeen{{ID: "shard-1"}}}, nil)
	var seqs []uint64
	for range 10 {
		seqs = append(seqs, appendPage(t, w, 5, 500))
	}
	want := *w.State()
	// an election may come between
	for name, tried := c.spoil(t, q, l, seqs[4]), false; !tried; tried = leaderOf(t, l) == name {
		c.lead(t, q, l, name)
		if m, err := l.message(ctx, seqs[4]); !errors.Is(err, jetstream.ErrMsgNotFound) && !conn.Transient(err) {
			t.Fatalf("the leader's spoilt entry: %v, %v, want none", m, err)
		}
		for range 12 { // one consumer in three runs on the server with the damaged entry
			sameState(t, fold(t, l), &want)
		}
		if d := cmp.Diff(sequences(1, 50), readSeqs(t, l, want.Seq)); d != "" {
			t.Fatal(d)
		}
	}
	for name, tried := c.spoil(t, q, l, seqs[9]), false; !tried; tried = leaderOf(t, l) == name {
		c.lead(t, q, l, name)
		err := conn.Retry(ctx, func() error { _, err := l.Fold(ctx); return err })
		if !errors.Is(err, ErrDamaged) && leaderOf(t, l) == name {
			t.Fatalf("the leader cannot read the newest entry: %v, want damaged", err)
		}
	}
}

// spoil flips a byte of an entry in the copy of a follower, and returns the name of its server.
func (c *cluster) spoil(t *testing.T, q *Queue, l *Log, seq uint64) string {
	t.Helper()
	ctx := testContext(t)
	var m *jetstream.RawStreamMsg
	if err := conn.Retry(ctx, func() (err error) { m, err = l.message(ctx, seq); return err }); err != nil {
		t.Fatal(err)
	}
	name := c.follower(t, q, l)
	c.stop(name)
	flipByte(t, c.options[name].StoreDir, m.Data)
	c.start(t, name)
	return name
}

// lead lets a server lead the log's stream.
func (c *cluster) lead(t *testing.T, q *Queue, l *Log, name string) {
	t.Helper()
	ctx := testContext(t)
	for leaderOf(t, l) != name { // it is refused while that server has not caught up
		_, _ = q.conn.NC.Request("$JS.API.STREAM.LEADER.STEPDOWN."+l.name, []byte(`{"placement":{"preferred":"`+name+`"}}`),
			5*time.Second)
		if err := failure.Pause(ctx, 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}
