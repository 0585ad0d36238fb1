package control

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
)

// claimed returns a queue with the log of Orders, and its owner.
func claimed(t *testing.T) (*queue.Queue, *queue.Writer) {
	t.Helper()
	ctx := t.Context()
	q, err := queue.Open(ctx, queue.Options{Pipeline: "shop", Dir: t.TempDir(), MaxBytes: 64 << 20}, zap.NewNop(),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	log, err := q.CreateLog(ctx, "Orders", "t0ken")
	if err != nil {
		t.Fatal(err)
	}
	owner, err := log.Claim(ctx, queue.ClaimOptions{Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	return q, owner
}

// TestOrderHasTheTimeOfTheServicesClock: the operator's machine may be wrong by years, as here,
// where the log ends in 2001. A resync waits until the service's clock is past its order.
func TestOrderHasTheTimeOfTheServicesClock(t *testing.T) {
	const begin = change.Millis(1_000_000_000_000)
	ctx := t.Context()
	q, owner := claimed(t)
	if _, err := owner.Append(ctx, &checkpoint.Start{Stream: "s", Date: begin}, nil); err != nil {
		t.Fatal(err)
	}
	clock := func(now change.Millis, ok bool) func(context.Context, string) (change.Millis, bool) {
		return func(context.Context, string) (change.Millis, bool) { return now, ok }
	}
	for _, c := range []struct {
		name  string
		clock func(context.Context, string) (change.Millis, bool)
		want  change.Millis
	}{
		{"DynamoDB answers", clock(begin+7000, true), begin + 7000},
		{"DynamoDB does not answer", clock(begin+9000, false), begin},
		{"nobody asks it", nil, begin},
	} {
		l, err := Open(ctx, q, "Orders")
		if err != nil {
			t.Fatal(err)
		}
		l.Clock = c.clock
		if _, err := l.Resync(ctx, "resync", nil); err != nil {
			t.Fatal(err)
		}
		if got := l.State.Resync.Asked; got != c.want {
			t.Errorf("%s: asked at %s, want %s", c.name, got.Time().UTC(), c.want.Time().UTC())
		}
	}
}

// TestRefusalAtAFenceIsOfARepair: it names the command's own word once, and no step in between.
func TestRefusalAtAFenceIsOfARepair(t *testing.T) {
	ctx := t.Context()
	q, owner := claimed(t)
	start := &checkpoint.Start{Stream: "s", Date: 1, Shards: []checkpoint.ShardSeen{{ID: "shard-1"}}}
	if _, err := owner.Append(ctx, start, nil); err != nil {
		t.Fatal(err)
	}
	mark := checkpoint.Mark{Seq: owner.State().Seq, Hash: owner.State().Hash}
	marks := &checkpoint.Marks{Sinks: map[string]checkpoint.Mark{checkpoint.SinkBigtable: mark}}
	if _, err := owner.Append(ctx, marks, nil); err != nil {
		t.Fatal(err)
	}
	l, err := Open(ctx, q, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(ctx, "fence", checkpoint.Control{Fence: &checkpoint.FenceOrder{ID: "cut"}}); err != nil {
		t.Fatal(err)
	}
	err = (&TableOrder{Log: l}).Send(ctx)
	if _, hint := failure.Of(err); hint != FenceHint || err == nil ||
		!strings.HasPrefix(err.Error(), "repair of table Orders: the table is fenced since ") ||
		!strings.HasSuffix(err.Error(), ": a repair would write to rows that may belong to the application by now") {
		t.Errorf("%v, next: %s", err, hint)
	}
}
