package queue

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/queue/internal/testpage"
)

func openLetters(t *testing.T, q *Queue) *deadletter.Store {
	t.Helper()
	d, err := createLog(t, q).DeadLetters(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func changesOf(t *testing.T, n int) (cs []*change.Change) {
	t.Helper()
	frames := mustPack(t, conn.MaxPayload, testpage.After(t, change.Position{}, 0, n, 50))
	for _, f := range frames {
		raw, _, err := frame.Decompress(f.Data, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Body.Pages {
			if err := change.DecodeRecords(raw[p.Offset:p.Offset+p.Length], p.Feed, func(c *change.Change) error {
				kept := *c
				cs = append(cs, &kept)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cs
}

func TestReplayStoresEachLetterOnce(t *testing.T) {
	ctx := testContext(t)
	d := openLetters(t, embeddedQueue(t))
	now := time.Unix(1_790_000_000, 0).UTC()
	changes := changesOf(t, 5)
	for round := range 3 {
		for _, c := range changes {
			if err := d.Put(ctx, deadletter.New("Orders", "bigtable", c, "mapping", "no rule", now)); err != nil {
				t.Fatal(err)
			}
		}
		if round == 0 {
			retried := deadletter.Retried{Code: "row_too_large", Reason: "still", At: now.Add(time.Minute)}
			id := deadletter.New("Orders", "bigtable", changes[1], "", "", now).ID
			if err := d.RecordRetry(ctx, id, retried); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, err := d.Count(ctx); n != 5 || err != nil {
		t.Fatalf("%d letters, %v", n, err)
	}
	var attempts []int
	for letter, err := range d.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		attempts = append(attempts, letter.Attempts)
	}
	if d := cmp.Diff([]int{0, 0, 0, 0, 1}, attempts); d != "" { // rewritten, so last
		t.Fatal(d)
	}
}

// undecided refuses a number of publishes as a server does while an earlier attempt is under way.
type undecided struct {
	jetstream.JetStream
	times int
}

func (u *undecided) PublishMsg(
	ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt,
) (*jetstream.PubAck, error) {
	if u.times--; u.times >= 0 {
		return nil, &jetstream.APIError{Code: 400, ErrorCode: conn.CodeWrongSequenceR3, Description: "wrong last sequence"}
	}
	return u.JetStream.PublishMsg(ctx, m, opts...)
}

// An earlier attempt is under way, and nobody knows whether it will be stored: the letter is not
// there yet.
func TestLetterUnderWayIsNotStored(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	d := openLetters(t, q)
	letter := deadletter.New("Orders", "bigtable", changesOf(t, 1)[0], "mapping", "no rule", time.Unix(1_790_000_000, 0))
	for _, store := range []func() error{
		func() error { return d.Put(ctx, letter) },
		func() error {
			again := letter.LastTried.Add(time.Minute)
			return d.RecordRetry(ctx, letter.ID, deadletter.Retried{Code: "mapping", Reason: "still", At: again})
		},
	} {
		refusals := &undecided{q.conn.JS, 2}
		q.conn.JS = refusals
		if err := store(); err != nil {
			t.Fatal(err)
		}
		if q.conn.JS = refusals.JetStream; refusals.times >= 0 {
			t.Fatalf("%d refusals were not waited for", refusals.times+1)
		}
	}
	if got, err := d.Get(ctx, letter.ID); err != nil || got.Attempts != 1 || got.Reason != "still" {
		t.Fatalf("stored is %+v: %v", got, err)
	}
}

// The same in a cluster: the leader alone cannot store anything, however often it is asked.
func TestLetterWithoutAQuorumIsNotStored(t *testing.T) {
	long(t, "electing a leader takes seconds")
	ctx := testContext(t)
	c := startCluster(t)
	q := connectTo(t, c.addr(), func(o *Options) { o.Replicas = 3 })
	var d *deadletter.Store
	err := conn.Retry(ctx, func() (err error) { d, err = claimIn(t, q).Log().DeadLetters(ctx); return err })
	if err != nil {
		t.Fatal(err)
	}
	st, err := q.conn.JS.Stream(ctx, streamName(q.opts.Pipeline, "Orders")+"_letters")
	if err != nil {
		t.Fatal(err)
	}
	info, err := q.conn.StreamInfo(ctx, st)
	for ; err != nil && ctx.Err() == nil; info, err = q.conn.StreamInfo(ctx, st) {
	}
	if err != nil {
		t.Fatal(err)
	}
	leader := info.Cluster.Leader
	o := c.options[leader]
	alone := connectTo(t, net.JoinHostPort(o.Host, strconv.Itoa(o.Port)),
		func(o *Options) { o.Replicas, o.AckTimeout = 3, time.Second })
	l, err := alone.Log(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	if d, err = l.DeadLetters(ctx); err != nil {
		t.Fatal(err)
	}
	for name := range c.options {
		if name != leader {
			c.stop(name)
		}
	}
	letter := deadletter.New("Orders", "bigtable", changesOf(t, 1)[0], "mapping", "no rule", time.Unix(1_790_000_000, 0))
	short, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	if err := d.Put(short, letter); err == nil {
		t.Fatal("put without a quorum: stored")
	}
	for name := range c.options {
		if name != leader {
			c.start(t, name)
		}
	}
	if err := d.Put(ctx, letter); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(ctx, letter.ID); err != nil {
		t.Fatal(err)
	}
}

func TestLetterGivesItsChangeBack(t *testing.T) {
	ctx := testContext(t)
	d := openLetters(t, embeddedQueue(t))
	c := changesOf(t, 1)[0]
	letter := deadletter.New("Orders", "bigtable", c, "mapping", "no rule", time.Now())
	if err := d.Put(ctx, letter); err != nil {
		t.Fatal(err)
	}
	got, err := d.Get(ctx, letter.ID)
	if err != nil {
		t.Fatal(err)
	}
	back, err := got.Change()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c, back); d != "" {
		t.Fatal(d)
	}
	if err := d.Drop(ctx, letter.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(ctx, letter.ID); !errors.Is(err, deadletter.ErrNotFound) {
		t.Fatalf("get after drop: %v", err)
	}
	if n, _ := d.Count(ctx); n != 0 {
		t.Fatalf("%d letters after drop", n)
	}
	for range d.All(ctx) {
		t.Fatal("a letter after drop")
	}
}

func TestUnknownLetterIsNotFound(t *testing.T) {
	ctx := testContext(t)
	d := openLetters(t, embeddedQueue(t))
	for _, id := range []string{"", "*", "abc", "0011223344556677", ">"} {
		if _, err := d.Get(ctx, id); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("get %q: %v", id, err)
		}
		if err := d.Drop(ctx, id); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("drop %q: %v", id, err)
		}
	}
}

func TestFullLettersHaltInsteadOfDropping(t *testing.T) {
	ctx := testContext(t)
	d := openLetters(t, embeddedIn(t, t.TempDir(), func(o *Options) { o.LettersMaxBytes = 2000 }))
	var err error
	for _, c := range changesOf(t, 20) {
		if err = d.Put(ctx, deadletter.New("Orders", "bigtable", c, "mapping", "no rule", time.Now())); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("put into full letters: %v", err)
	}
}

// Numbers of letters are not contiguous, so nothing else tells that one was dropped on the way.
func TestDroppedLettersAreListed(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	d := openLetters(t, q)
	var want []string
	for _, c := range changesOf(t, 6) {
		letter := deadletter.New("Orders", "bigtable", c, "mapping", "no rule", time.Unix(1_790_000_000, 0))
		if err := d.Put(ctx, letter); err != nil {
			t.Fatal(err)
		}
		want = append(want, letter.ID)
	}
	consumers := 0
	q.conn.CreateConsumer = func(
		ctx context.Context, stream string, cfg jetstream.ConsumerConfig,
	) (jetstream.Consumer, error) {
		c, err := q.conn.JS.CreateConsumer(ctx, stream, cfg)
		if consumers++; consumers > 1 || err != nil {
			return c, err
		}
		return lossy{c}, nil
	}
	var got []string
	for letter, err := range d.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, letter.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" || consumers < 2 {
		t.Fatalf("over %d consumers: %s", consumers, diff)
	}
}

// TestExistingDeadLettersMakesNoStream: status and dlq list write nothing.
func TestExistingDeadLettersMakesNoStream(t *testing.T) {
	ctx := testContext(t)
	q := embeddedQueue(t)
	l := createLog(t, q)
	for range 2 {
		if d, err := l.ExistingDeadLetters(ctx); d != nil || err != nil {
			t.Fatalf("letters %v, %v in a log that has none", d, err)
		}
	}
	if _, err := l.DeadLetters(ctx); err != nil {
		t.Fatal(err)
	}
	if d, err := l.ExistingDeadLetters(ctx); d == nil || err != nil {
		t.Fatalf("letters %v, %v: they are not found", d, err)
	}
}
