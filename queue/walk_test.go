package queue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

const (
	loggedStream = "arn:aws:dynamodb:eu-west-1:1:table/Orders/stream/2026-01-01T00:00:00.000"
	loggedSecond = change.Millis(1_790_000_000_000)
)

var schema = change.KeySchema{
	Partition: change.KeyAttr{Name: "pk", Type: 'S'}, Sort: &change.KeyAttr{Name: "n", Type: 'N'},
}

// writer is the owner of a log in an embedded queue.
type writer struct {
	*testing.T
	*Writer
	records int
}

func newWriter(t *testing.T) *writer {
	ctx := t.Context()
	o := Options{Pipeline: "shop", Dir: t.TempDir(), MaxBytes: 64 << 20, ReplayWindow: -1}
	q, err := Open(ctx, o, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	log, err := q.CreateLog(ctx, "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{T: t}
	if w.Writer, err = log.Claim(ctx, ClaimOptions{Owner: "a"}); err != nil {
		t.Fatal(err)
	}
	w.append(&checkpoint.Start{
		Stream: loggedStream, Date: loggedSecond, Shards: []checkpoint.ShardSeen{{ID: "shard-1"}},
	}, nil)
	return w
}

func (w *writer) append(body any, data []byte) {
	w.Helper()
	if _, err := w.Append(context.WithoutCancel(w.Context()), body, data); err != nil {
		w.Fatal(err)
	}
}

// write appends a frame with a change of each item: its key in DynamoDB's JSON.
func (w *writer) write(keys ...string) {
	w.Helper()
	w.read(`"eventName":"MODIFY"`, "NewImage", keys...)
}

// expire appends a frame with a deletion of each item by TTL.
func (w *writer) expire(keys ...string) {
	w.Helper()
	w.read(`"eventName":"REMOVE","userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}`, "OldImage",
		keys...)
}

func (w *writer) read(what, image string, keys ...string) {
	w.Helper()
	var records []string
	for _, key := range keys {
		w.records++
		records = append(records, fmt.Sprintf(`{"dynamodb":{"ApproximateCreationDateTime":%d,"Keys":%s,%q:%s,`+
			`"SequenceNumber":"1%020d","SizeBytes":9},"eventID":"e",%s}`,
			loggedSecond/1000, key, image, key, w.records, what))
	}
	recs, _, err := change.ScanPage([]byte(`{"Records":[`+strings.Join(records, ",")+`]}`), nil)
	if err != nil {
		w.Fatal(err)
	}
	sh := w.State().Shards["shard-1"]
	p := &change.Page{
		Feed: change.Feed{Stream: loggedStream, Shard: "shard-1"}, From: sh.Pos, ClockFrom: sh.Clock, Date: loggedSecond,
		Records: recs,
	}
	clock := change.Clock(sh.Clock)
	var d change.Decoder
	for i := range recs {
		img, err := d.Image(recs[i].Keys)
		if err != nil {
			w.Fatal(err)
		}
		key, err := schema.Canonical(nil, img)
		if err != nil {
			w.Fatal(err)
		}
		recs[i].KeyHash, recs[i].Version = change.HashKey(key), clock.Next(recs[i].Created)
		p.To, p.Clock = change.Position{After: change.SequenceNumber(recs[i].SequenceNumber)}, recs[i].Version
	}
	frames, err := frame.Pack([]*change.Page{p}, 1<<20)
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range frames {
		w.append(f.Body, f.Data)
	}
}

// trim deletes everything that a sink has applied, which is all, below a new snapshot.
func (w *writer) trim() {
	w.Helper()
	before := w.State().Seq
	w.append(&checkpoint.Marks{Sinks: map[string]checkpoint.Mark{"bigtable": {Seq: before, Hash: w.State().Hash}}}, nil)
	w.takeOver("a")
	if at, err := w.Trim(context.WithoutCancel(w.Context()), math.MaxUint64); err != nil || at <= before {
		w.Fatalf("the log begins at %d: %v", at, err)
	}
}

// takeOver releases the log, which appends a snapshot, and claims it for an owner.
func (w *writer) takeOver(owner string) {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	if err := w.Release(ctx); err != nil {
		w.Fatal(err)
	}
	next, err := w.Log().Claim(ctx, ClaimOptions{Owner: owner})
	if err != nil {
		w.Fatal(err)
	}
	w.Writer = next
}

// keysIn returns what a walk yields.
func keysIn(t *testing.T, w Walk) (keys []string, end checkpoint.Mark) {
	t.Helper()
	end, err := w.Changes(t.Context(), func(c *WalkedChange) error {
		key, err := c.Key(nil, schema)
		keys = append(keys, string(key))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys, end
}

func itemKey(pk, n string) string { return fmt.Sprintf(`{"pk":{"S":%q},"n":{"N":%q}}`, pk, n) }

func TestWalkGoesOnBehindItsLastEntry(t *testing.T) {
	w := newWriter(t)
	w.write(itemKey("a", "1"), `{"n":{"N":"2.50"},"pk":{"S":"a"}}`)
	keys, end := keysIn(t, Walk{Log: w.Log()})
	if diff := cmp.Diff([]string{itemKey("a", "1"), itemKey("a", "2.5")}, keys); diff != "" {
		t.Error(diff)
	}
	if keys, same := keysIn(t, Walk{Log: w.Log(), After: end}); len(keys) > 0 || same != end {
		t.Errorf("behind the end: %v, %v instead of %v", keys, same, end)
	}
	w.append(&checkpoint.Beat{Date: loggedSecond}, nil)
	w.write(itemKey("b", "1"))
	keys, end = keysIn(t, Walk{Log: w.Log(), After: end})
	if len(keys) != 1 || keys[0] != itemKey("b", "1") || end.Seq != w.State().Seq {
		t.Errorf("%v, and the end is %v of %d", keys, end, w.State().Seq)
	}
	end.Hash[0]++
	for range 2 { // another log may end at the same entry, or go on behind it
		if _, err := (Walk{Log: w.Log(), After: end}).Changes(t.Context(), nil); !errors.Is(err, ErrChain) {
			t.Errorf("a walk behind an entry of another log: %v", err)
		}
		w.append(&checkpoint.Beat{Date: loggedSecond}, nil)
	}
}

func TestEntriesNameTheirOwners(t *testing.T) {
	w := newWriter(t)
	w.write(itemKey("a", "1"))
	w.takeOver("b")
	w.write(itemKey("a", "2"))
	var owners []string
	_, err := Walk{Log: w.Log()}.Changes(t.Context(), func(c *WalkedChange) error {
		owners = append(owners, fmt.Sprint(c.Entry.Owner, c.Entry.Epoch))
		return nil
	})
	if diff := cmp.Diff([]string{"a1", "b2"}, owners); diff != "" || err != nil {
		t.Errorf("%v%s", err, diff)
	}
}

func TestWalkFindsTheChangesOfItems(t *testing.T) {
	w := newWriter(t)
	w.write(itemKey("a", "1"), itemKey("b", "1"), itemKey("a", "1"), itemKey("a", "2"))
	found := map[int]int{}
	keys := [][]byte{[]byte(itemKey("a", "2")), []byte(itemKey("a", "1")), []byte(itemKey("c", "1"))}
	_, err := Walk{Log: w.Log()}.ChangesOf(t.Context(), schema, keys, func(key int, c *WalkedChange) error {
		found[key]++
		var d change.Decoder
		if img, err := d.Image(c.New); err != nil || img.Get("pk").S != "a" {
			t.Errorf("image %v: %v", img, err)
		}
		return nil
	})
	if diff := cmp.Diff(map[int]int{0: 1, 1: 2}, found); diff != "" || err != nil {
		t.Errorf("%v%s", err, diff)
	}
	stop := errors.New("enough")
	_, err = Walk{Log: w.Log()}.Changes(t.Context(), func(*WalkedChange) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

func TestTrimmedLogIsAnErrorOfItsOwn(t *testing.T) {
	w := newWriter(t)
	began := time.Now().Add(-time.Hour)
	w.write(itemKey("a", "1"))
	old := w.State().Seq
	if from, err := EntrySince(t.Context(), w.Log(), began); err != nil || from >= old {
		t.Errorf("from %d: %v", from, err)
	}
	_, end := keysIn(t, Walk{Log: w.Log()})
	w.write(itemKey("b", "1"))
	w.trim()
	if _, err := EntrySince(t.Context(), w.Log(), began); !errors.Is(err, ErrTrimmed) {
		t.Errorf("since a time: %v", err)
	}
	const hour = change.Millis(3600_000) // by a service whose clock is years ahead of the server's
	if _, err := EntrySinceCreated(t.Context(), w.Log(), 100_000*hour, 100_001*hour); !errors.Is(err, ErrTrimmed) {
		t.Errorf("since a time of the service: %v", err)
	}
	if from, err := EntrySinceCreated(t.Context(), w.Log(), 100_003*hour, 100_001*hour); err != nil || from <= end.Seq {
		t.Errorf("from %d: %v", from, err)
	}
	for _, walk := range []Walk{{From: old}, {After: end}} {
		walk.Log = w.Log()
		if _, err := walk.Changes(t.Context(), func(*WalkedChange) error { return nil }); !errors.Is(err, ErrTrimmed) {
			t.Errorf("%+v: %v", walk, err)
		}
	}
	keysIn(t, Walk{Log: w.Log()}) // all that there is
	if from, err := EntrySince(t.Context(), w.Log(), time.Now().Add(time.Hour)); err != nil || from != w.State().Seq+1 {
		t.Errorf("from %d: %v", from, err)
	}
}

// TestLogIsTrimmedDuringAWalk: what was yielded is not everything.
func TestLogIsTrimmedDuringAWalk(t *testing.T) {
	w := newWriter(t)
	const entries = 24 // of 600 KB each: more than one pull of a reader brings
	for range entries {
		b := make([]byte, 150<<10)
		_, _ = rand.Read(b)
		w.write(itemKey(hex.EncodeToString(b), "1"))
	}
	seen := 0
	_, err := Walk{Log: w.Log()}.Changes(t.Context(), func(*WalkedChange) error {
		if seen++; seen == 1 {
			w.trim()
		}
		return nil
	})
	if seen == entries || !errors.Is(err, ErrTrimmed) {
		t.Errorf("%d changes: %v", seen, err)
	}
}

// TestOwnerOfATrimmedClaimIsNotKnown, but for the newest one: the entries of two owners are left,
// and neither claim is.
func TestOwnerOfATrimmedClaimIsNotKnown(t *testing.T) {
	x := &walking{owner: "b", epoch: 2}
	for _, c := range []struct {
		epoch uint64
		body  any
		want  string
	}{
		{1, &checkpoint.Beat{}, ""}, {2, &checkpoint.Beat{}, "b"}, {3, &checkpoint.Claim{Owner: "c"}, "c"},
		{3, &checkpoint.Beat{}, "c"}, {2, &checkpoint.Beat{}, ""},
	} {
		if e := x.entry(checkpoint.Mark{}, &checkpoint.Entry{Epoch: c.epoch, Body: c.body}); e.Owner != c.want {
			t.Errorf("%T of epoch %d is of owner %q, want %q", c.body, c.epoch, e.Owner, c.want)
		}
	}
}

// TestWalkFindsNoItemByItsHashAlone: other items may share it.
func TestWalkFindsNoItemByItsHashAlone(t *testing.T) {
	w := newWriter(t)
	w.write(itemKey("a", "1"))
	wanted := change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}} // spells the key in another way
	_, err := Walk{Log: w.Log()}.ChangesOf(t.Context(), wanted, [][]byte{[]byte(itemKey("a", "1"))},
		func(int, *WalkedChange) error {
			t.Error("an item with another key is found by the hash")
			return nil
		})
	if err != nil {
		t.Error(err)
	}
}

// TestEntryOfATimeIsBeforeIt: a change that was created then may have been stored by a server whose
// clock is behind by as much as a minute.
func TestEntryOfATimeIsBeforeIt(t *testing.T) {
	w := newWriter(t)
	first := w.State().Seq
	w.write(itemKey("a", "1"))
	info, err := w.Log().Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := change.MillisOf(info.Now)
	seq, err := EntrySinceCreated(t.Context(), w.Log(), now+30_000, now)
	if err != nil || seq > first {
		t.Errorf("a walk of what was created from now on begins at entry %d, and %d is as new: %v", seq, first, err)
	}
}

// TestDeletionsByTTLAreNotNamed among what was written behind a fence.
func TestDeletionsByTTLAreNotNamed(t *testing.T) {
	w := newWriter(t)
	behind := w.State().Seq
	w.expire(itemKey("a", "1"))
	if hashes, err := KeyHashesBehind(t.Context(), w.Log(), behind, 9); len(hashes) > 0 || err != nil {
		t.Errorf("deleted by TTL: %v, %v", hashes, err)
	}
	w.write(itemKey("a", "2"), itemKey("a", "2"), itemKey("a", "3"))
	if hashes, err := KeyHashesBehind(t.Context(), w.Log(), behind, 9); len(hashes) != 2 || err != nil {
		t.Errorf("two items were written: %v, %v", hashes, err)
	}
	if hashes, err := KeyHashesBehind(t.Context(), w.Log(), behind, 1); len(hashes) != 1 || err != nil {
		t.Errorf("one is enough: %v, %v", hashes, err)
	}
}

// TestWalkFromBeyondTheEndIsNotTrimmed: what is not there yet was not deleted.
func TestWalkFromBeyondTheEndIsNotTrimmed(t *testing.T) {
	w := newWriter(t)
	_, err := Walk{Log: w.Log(), From: w.State().Seq + 9}.Entries(t.Context(), func(*WalkedEntry) error { return nil })
	if !errors.Is(err, ErrGap) || errors.Is(err, ErrTrimmed) {
		t.Errorf("a walk from beyond the end: %v", err)
	}
}
