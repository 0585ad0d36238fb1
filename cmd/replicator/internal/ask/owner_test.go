package ask

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/order"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/request"
)

// TestOwnerLivesForThreeClaims: an owner that has released the log, or is silent for longer, does not live.
func TestOwnerLivesForThreeClaims(t *testing.T) {
	const ttl = time.Minute
	now := time.UnixMilli(10_000_000)
	at := func(silent time.Duration) change.Millis { return change.MillisOf(now.Add(-silent)) }
	for name, c := range map[string]struct {
		s    checkpoint.State
		want bool
	}{
		"just seen":       {checkpoint.State{Owner: "a", Date: at(0)}, true},
		"silent":          {checkpoint.State{Owner: "a", Date: at(3 * ttl)}, true},
		"silent for long": {checkpoint.State{Owner: "a", Date: at(3*ttl + time.Millisecond)}, false},
		"released":        {checkpoint.State{Owner: "a", Date: at(0), Chain: checkpoint.Chain{Released: true}}, false},
		"never owned":     {checkpoint.State{Date: at(0)}, false},
	} {
		if err := CheckOwner("Orders", &c.s, Silence(&c.s, now), ttl); err == nil != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEntriesOfAnOwnerAreSignsOfLife, Rule 13: whatever a clock shows, an owner from which an entry came is silent no
// longer than since then. Entries of commands are none.
func TestEntriesOfAnOwnerAreSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.UnixMilli(10_000_000) // one answer with a wrong time; it stands still, unlike this process's clock
		s := &checkpoint.State{Owner: "a", Chain: checkpoint.Chain{Epoch: 1}, Date: 1}
		old := Silence(s, now)
		var l Life
		look := func(what string, want time.Duration) {
			t.Helper()
			if got := l.Silence(s, now); got != want {
				t.Errorf("%s: silent for %s, want %s", what, got, want)
			}
		}
		await := func(d time.Duration) { <-time.After(d) }
		look("the first look", old)
		s.Seq, s.Paused = s.Seq+1, true
		look("an entry of a command", old)
		await(time.Second)
		s.Date = 2
		look("a beat", 0)
		await(time.Minute)
		look("a minute later", time.Minute)
		s.Epoch++
		look("a claim", 0)
		s.Date = change.MillisOf(now) + 1000
		look("a beat ahead", -time.Second)
	})
}

// TestAnswerOfTheQueueThatIsNoneIsOfTheEnvironment: such an error ends a command with exit code 3.
func TestAnswerOfTheQueueThatIsNoneIsOfTheEnvironment(t *testing.T) {
	a := &Asker{store: &request.Store{}}
	odd := errors.New("invalid jetstream publish response")
	err := a.repeat(t.Context(), func(context.Context, *request.Store) error { return odd })
	var coded *exit.Error
	if !errors.As(err, &coded) || coded.Code != exit.CodeEnvironment || coded.Hint == "" || !errors.Is(err, odd) {
		t.Errorf("%v, %+v", err, coded)
	}
}

// TestSilenceOfAnOwnerIsObserved, Rule 13: an old beat alone is no silence. The log is looked at
// again, and only an owner that stores nothing meanwhile has given no sign of life.
func TestSilenceOfAnOwnerIsObserved(t *testing.T) {
	ctx := t.Context()
	q, err := queue.Open(ctx, queue.Options{Pipeline: "shop", Dir: t.TempDir(), MaxBytes: 64 << 20}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	log, err := q.CreateLog(ctx, "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	w, err := log.Claim(ctx, queue.ClaimOptions{Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	const began = change.Millis(1_790_000_000_000)
	start := &checkpoint.Start{
		Stream: "arn:aws:dynamodb:eu-west-1:1:table/Orders/stream/2026-01-01T00:00:00.000", Date: began,
		Shards: []checkpoint.ShardSeen{{ID: "shard-1"}},
	}
	if _, err := w.Append(ctx, start, nil); err != nil {
		t.Fatal(err)
	}
	l, err := order.Open(ctx, q, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	later := began + 2*60_000 // the clock was set
	now := func() time.Time { return later.Time() }
	silent, err := new(Life).Await(ctx, l, now, time.Second, 3*betweenLooks)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckOwner("Orders", l.State, silent, time.Second); err == nil ||
		!strings.Contains(err.Error(), "no sign of life") {
		t.Errorf("an owner that stores nothing: %v", err)
	}
	if alive, err := Lives(ctx, l, now, time.Millisecond); alive || err != nil {
		t.Errorf("an owner that stores nothing: %v, %v", alive, err)
	}
	for _, date := range []change.Millis{began + 1, later} { // by the owner's clock, and by the one that was set
		if _, err := w.Append(ctx, &checkpoint.Beat{Date: date}, nil); err != nil {
			t.Fatal(err)
		}
		silent, err := new(Life).Await(ctx, l, now, time.Second, time.Hour) // l has not read the beat
		if err != nil || silent > 3*time.Second {
			t.Errorf("an owner that lives is silent for %s: %v", silent, err)
		}
	}
}
