package cutover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/verify"
)

const (
	stream = "arn:aws:dynamodb:eu-west-1:1:table/Orders/stream/2026-01-01T00:00:00.000"
	begin  = change.Millis(1_790_000_000_000)
)

// world is a log in an embedded queue with its owner, and a cutover of its table that knows nothing
// but the log.
type world struct {
	*testing.T
	queue   *queue.Queue
	log     *queue.Log
	owner   *queue.Writer
	records int
	cutover *Cutover
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx := t.Context()
	o := queue.Options{Pipeline: "shop", Dir: t.TempDir(), MaxBytes: 64 << 20, ReplayWindow: -1}
	q, err := queue.Open(ctx, o, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	w := &world{T: t, queue: q}
	if w.log, err = q.CreateLog(ctx, "Orders", "t0ken"); err != nil {
		t.Fatal(err)
	}
	if w.owner, err = w.log.Claim(ctx, queue.ClaimOptions{Owner: "a"}); err != nil {
		t.Fatal(err)
	}
	w.append(&checkpoint.Start{Stream: stream, Date: begin, Shards: []checkpoint.ShardSeen{{ID: "shard-1"}}}, nil)
	mark := checkpoint.Mark{Seq: w.owner.State().Seq, Hash: w.owner.State().Hash}
	w.append(&checkpoint.Marks{Sinks: map[string]checkpoint.Mark{checkpoint.SinkBigtable: mark}}, nil)
	orders := &catalog.Table{Table: config.Table{Source: "Orders", Target: "orders"}}
	orders.Info.Schema = change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}
	w.cutover = &Cutover{
		Options: Options{Say: func(string, ...any) {}}, pair: &pair.Pair{Tables: []*catalog.Table{orders}},
		behind: make([]behind, 1), logs: w.folded, unowned: w.folded, cfg: &config.Config{},
		obstacle: func([]*control.Log) error { return nil },
	}
	return w
}

// folded returns the log as it is now.
func (w *world) folded(ctx context.Context) ([]*control.Log, error) {
	l := &control.Log{Table: "Orders", Log: w.log}
	return []*control.Log{l}, l.Refresh(ctx)
}

func (w *world) append(body any, data []byte) {
	w.Helper()
	if _, err := w.owner.Append(context.WithoutCancel(w.Context()), body, data); err != nil {
		w.Fatal(err)
	}
}

// fence raises a fence or takes it away, as a command does.
func (w *world) fence(id string, undo bool) {
	w.Helper()
	order := &checkpoint.FenceOrder{ID: id, Undo: undo}
	if _, err := w.log.AppendControl(w.Context(), &checkpoint.Control{Fence: order}); err != nil {
		w.Fatal(err)
	}
	if err := w.owner.Recover(w.Context()); err != nil { // its next append would be refused
		w.Fatal(err)
	}
}

// write has the owner read a change of an item from a page of a time of the service's clock.
func (w *world) write(key string, at change.Millis) {
	w.Helper()
	w.read(`"eventName":"MODIFY"`, "NewImage", key, at)
}

// expire has the owner read a deletion by TTL.
func (w *world) expire(key string, at change.Millis) {
	w.Helper()
	const ttl = `"eventName":"REMOVE","userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}`
	w.read(ttl, "OldImage", key, at)
}

func (w *world) read(what, image, key string, at change.Millis) {
	w.Helper()
	w.records++
	recs, _, err := change.ScanPage(fmt.Appendf(nil, `{"Records":[{"dynamodb":{"ApproximateCreationDateTime":%d,`+
		`"Keys":{"pk":{"S":%q}},%q:{"pk":{"S":%q}},"SequenceNumber":"1%020d","SizeBytes":9},"eventID":"e",%s}]}`,
		at/1000, key, image, key, w.records, what), nil)
	if err != nil {
		w.Fatal(err)
	}
	sh := w.owner.State().Shards["shard-1"]
	clock := change.Clock(sh.Clock)
	recs[0].Version = clock.Next(recs[0].Created)
	frames, err := frame.Pack([]*change.Page{{
		Feed: change.Feed{Stream: stream, Shard: "shard-1"}, From: sh.Pos, ClockFrom: sh.Clock, Date: at, Records: recs,
		To: change.Position{After: change.SequenceNumber(recs[0].SequenceNumber)}, Clock: recs[0].Version,
	}}, 1<<20)
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range frames {
		w.append(f.Body, f.Data)
	}
}

// refused fails unless an error is a refusal that says something.
func (w *world) refused(err error, says string) {
	w.Helper()
	var refused *Refused
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), says) {
		w.Errorf("%v, want a refusal that says %q", err, says)
	}
}

// TestLateRecordForbidsTheCertificate: reads of a shard were empty although it held a change, as
// DynamoDB may answer. The change comes out of the shard while the certificate waits for the
// heartbeat that lies behind it.
func TestLateRecordForbidsTheCertificate(t *testing.T) {
	w := newWorld(t)
	w.fence("f1", false)
	c := w.cutover
	c.id = "f1"
	if _, err := c.lookBehind(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.pair.Tables[0].Heartbeat = config.Heartbeat{Write: true, Every: config.Duration(time.Hour)}
	looks := 0
	c.logs = func(ctx context.Context) ([]*control.Log, error) {
		logs, err := w.folded(ctx)
		if looks++; looks == 2 { // this look hears of the heartbeat that is waited for
			w.write("late", begin+1000)
		}
		logs[0].State.Proof = checkpoint.Proof{Read: begin + change.Millis(looks)*1000}
		return logs, err
	}
	_, err := c.issue(t.Context(), begin, &verified{}, begin+2000)
	if looks != 3 {
		t.Errorf("%d looks, want two for heartbeats and one behind the fence", looks)
	}
	w.refused(err, "Orders was written to behind the fence: Bigtable lacks 1 change")
}

// TestFenceThatIsRaisedAnewIsAnotherOne: another process has taken the fence away, and a third one,
// which had read its id before, has raised it again. Rows were written in between.
func TestFenceThatIsRaisedAnewIsAnotherOne(t *testing.T) {
	w := newWorld(t)
	w.fence("f1", false)
	c := w.cutover
	c.id = "f1"
	if _, err := c.lookBehind(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := c.identity()
	w.fence("f1", true)
	_, err := c.lookBehind(t.Context())
	w.refused(err, "the fence of Orders was taken away meanwhile")
	if r := (*Refused)(nil); !errors.As(err, &r) || !r.Undone { // else the command says that the fence stands
		t.Errorf("%v: it does not say that the fence is gone", err)
	}
	w.fence("f1", false)
	_, err = c.lookBehind(t.Context())
	w.refused(err, "the fence of Orders was taken away meanwhile")
	c.behind, c.id = make([]behind, 1), "f2"
	_, err = c.lookBehind(t.Context())
	w.refused(err, "the fence of Orders was taken away meanwhile")
	c.id = "f1"
	if _, err := c.lookBehind(t.Context()); err != nil || c.identity() == first {
		t.Errorf("another cutover under this fence: %v, and uses the parts of %s", err, first)
	}
}

// TestOwnerThatHasNotReadTheFenceIsWaitedFor: the fence is the newest entry of the log, so its
// owner may not have read it, and may apply one more entry that it has in hand. Only what it
// appends behind the fence shows that it has.
func TestOwnerThatHasNotReadTheFenceIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.write("a", begin+1000)
	mark := checkpoint.Mark{Seq: w.owner.State().Seq, Hash: w.owner.State().Hash}
	w.append(&checkpoint.Marks{Sinks: map[string]checkpoint.Mark{checkpoint.SinkBigtable: mark}}, nil)
	w.fence("f1", false)
	c := w.cutover
	c.id = "f1"
	looks := 0
	c.logs = func(ctx context.Context) ([]*control.Log, error) {
		logs, err := w.folded(ctx)
		if looks++; looks == 1 {
			if s := logs[0].State; s.Seq != s.Fence.Seq || !s.StandsAtFence() {
				t.Errorf("entry %d, fence %+v", s.Seq, s.Fence)
			}
			w.append(&checkpoint.Beat{Date: begin + 2000}, nil)
		}
		return logs, err
	}
	if err := c.awaitOwners(t.Context()); err != nil {
		t.Fatal(err)
	}
	if looks < 2 {
		t.Errorf("the owner is taken for one that knows of the fence after %d looks", looks)
	}
}

// TestItemsAreSettledAgainWhereTTLWasFaster: an item that TTL deletes while both sides are settled
// seems to differ. All are settled again, and counted anew, but not for ever.
func TestItemsAreSettledAgainWhereTTLWasFaster(t *testing.T) {
	w := newWorld(t)
	w.fence("f1", false)
	c := w.cutover
	c.id, c.pair.Tables[0].Program = "f1", newCutover(t, Options{}, plain).pair.Tables[0].Program
	at := begin
	for expire, want := range []int{1, 2, tries, tries} {
		runs := 0
		counts, err := c.settle(t.Context(), func(check *verify.Checker) error {
			if runs++; runs <= expire {
				at += 1000
				w.expire(fmt.Sprint(at), at)
			}
			return check.Verdict(&verify.Verdict{Status: verify.Equal})
		})
		if err != nil || runs != want || counts.items != 1 {
			t.Errorf("TTL is faster %d times: settled %d times, want %d: %+v, %v", expire, runs, want, counts, err)
		}
	}
	_, err := c.settle(t.Context(), func(*verify.Checker) error {
		w.write("a", at+1000)
		return nil
	})
	w.refused(err, "1 change that neither TTL nor a heartbeat made")
}

// TestQuietTimeBeginsBehindWhatTheLogHas: a change that was read before the first look at the log
// is not looked at, so the quiet time begins after it.
func TestQuietTimeBeginsBehindWhatTheLogHas(t *testing.T) {
	w := newWorld(t)
	w.write("a", begin+5000)
	logs, err := w.folded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := w.cutover
	c.quiet = begin + 4000
	c.marks = map[string]checkpoint.Mark{}
	if _, err := c.lastChange(t.Context(), logs[0]); err != nil {
		t.Fatal(err)
	}
	if want := begin + 6000; c.quiet != want {
		t.Errorf("quiet since %s, want %s", c.quiet.Time().Format(time.TimeOnly), want.Time().Format(time.TimeOnly))
	}
}

// TestQuietTimeEndsWithTheLastChangeBeforeTheFence: a change that came between the last look and
// the fence is compared, and no certificate may say that nothing was written then.
func TestQuietTimeEndsWithTheLastChangeBeforeTheFence(t *testing.T) {
	w := newWorld(t)
	c := w.cutover
	c.id, c.quiet = "f1", begin
	look := func(want change.Millis) {
		t.Helper()
		if err := c.lookBeforeFence(t.Context()); err != nil || c.quiet != want {
			t.Errorf("quiet since %s, want %s: %v", c.quiet.Time(), want.Time(), err)
		}
	}
	c.marks = map[string]checkpoint.Mark{"Orders": {Seq: w.owner.State().Seq, Hash: w.owner.State().Hash}}
	w.expire("a", begin+5000)
	look(begin)
	w.write("b", begin+7000)
	w.fence("f1", false)
	look(begin + 8000)
	c.quiet = 0 // another process has waited
	w.write("c", begin+9000)
	look(0)
}

// TestQuietTimeIsWaitedFor in full, as far as the shards are read: a change begins it anew, a
// deletion by TTL does not.
func TestQuietTimeIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	c := w.cutover
	c.Quiet = 10 * time.Second
	read := func(through change.Millis) func() {
		return func() { w.append(&checkpoint.Beat{Date: through, Listed: through, Watermark: through}, nil) }
	}
	steps := []func(){
		read(begin + 9_000), func() { w.write("a", begin+11_000) }, func() { w.expire("b", begin+13_000) },
		read(begin + 21_000), read(begin + 22_000),
	}
	looks := 0
	c.logs = func(ctx context.Context) ([]*control.Log, error) {
		if looks++; looks > len(steps) {
			return nil, errors.New("it does not end")
		}
		steps[looks-1]()
		return w.folded(ctx)
	}
	if err := c.awaitQuietFrom(t.Context(), begin); err != nil || c.quiet != begin+12_000 {
		t.Errorf("quiet since %s: %v", c.quiet.Time().UTC().Format(time.TimeOnly), err)
	}
	if looks != len(steps) {
		t.Errorf("it ended at look %d of %d", looks, len(steps))
	}
}

// TestQuietTimeEndsWhereTheLogCannotBeRead: what was written is not known then.
func TestQuietTimeEndsWhereTheLogCannotBeRead(t *testing.T) {
	w := newWorld(t)
	c, looks := w.cutover, 0
	c.logs = func(ctx context.Context) ([]*control.Log, error) {
		logs, err := w.folded(ctx)
		if looks++; err == nil && looks == 2 {
			err = w.queue.DeleteLog(ctx, w.log)
		}
		return logs, err
	}
	c.Quiet = time.Hour
	if err := c.awaitQuietFrom(t.Context(), begin); !errors.Is(err, queue.ErrEmptied) {
		t.Errorf("a log that was deleted meanwhile: %v", err)
	}
}

// TestQuietTimeIsReadInEveryShard: Rule 10. A listing, the reads of all shards, and no shard that a
// listing shows open while it counts as read to its end: such a one may hold a change of the quiet
// time.
func TestQuietTimeIsReadInEveryShard(t *testing.T) {
	log := func(listed, read change.Millis, set func(*checkpoint.State)) *control.Log {
		s := checkpoint.NewState()
		s.Streams, s.Listed = []*checkpoint.Stream{{ARN: "s"}}, listed
		s.Shards["a"] = &checkpoint.Shard{ID: "a", Stream: "s", Phase: checkpoint.PhaseOpen, Watermark: read}
		if set != nil {
			set(s)
		}
		s.Reindex()
		return &control.Log{Table: "Orders", State: s}
	}
	whole := log(100, 100, nil)
	unread := func(s *checkpoint.State) {
		s.Shards["b"] = &checkpoint.Shard{
			ID: "b", Stream: "s", Phase: checkpoint.PhaseFinished, SeenOpen: true, Watermark: 100,
		}
	}
	for name, c := range map[string]struct {
		logs []*control.Log
		want bool
	}{
		"all read":               {[]*control.Log{whole, whole}, true},
		"listed before":          {[]*control.Log{whole, log(99, 100, nil)}, false},
		"not read so far":        {[]*control.Log{log(100, 99, nil), whole}, false},
		"an open shard, unread":  {[]*control.Log{whole, log(100, 100, unread)}, false},
		"applied by nothing yet": {[]*control.Log{log(100, 100, func(s *checkpoint.State) { s.LastFrame = 9 })}, true},
	} {
		if got := readThrough(c.logs, 100); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
