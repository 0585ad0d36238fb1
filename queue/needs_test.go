package queue

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue/request"
)

// TestNeedsAreWhatTheServerReserves makes all streams of a table on a server that has just as much
// room as they are said to need, and then on one that has a byte less.
func TestNeedsAreWhatTheServerReserves(t *testing.T) {
	const table = "Orders"
	o := Options{Pipeline: "shop", MaxBytes: 64 << 20, LettersMaxBytes: 8 << 20, ArchiveMaxBytes: 16 << 20}
	all := NeedsOf(o, []string{table})
	if want := int64(64+8+16)<<20 + request.MaxBytes; all.Reserve != want || all.Grow != want {
		t.Fatalf("%+v, want %d", all, want)
	}
	for _, lacks := range []int64{0, 1} {
		ctx := testContext(t)
		s := startExternalWith(t, func(so *server.Options) { so.JetStreamMaxStore = all.Reserve - lacks })
		o := o
		o.URL = "nats://" + s.addr()
		q, err := Open(ctx, o, zap.NewNop(), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { q.Close() })
		if n, err := q.Needs(ctx, []string{table}); err != nil || n != all {
			t.Errorf("before the first start: %+v, %v, want %+v", n, err, all)
		}
		l := createLog(t, q)
		if n, err := q.Needs(ctx, []string{table}); err != nil || n.Reserve != all.Reserve-o.MaxBytes {
			t.Errorf("with its log: %+v, %v", n, err)
		}
		if _, err := l.DeadLetters(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Archive(ctx); err != nil {
			t.Fatal(err)
		}
		if n, err := q.Needs(ctx, []string{table}); err != nil || n.Reserve != request.MaxBytes {
			t.Errorf("without requests: %+v, %v", n, err)
		}
		_, err = l.Requests(ctx)
		if refused := err != nil; refused != (lacks > 0) {
			t.Errorf("with %d bytes less: %v", lacks, err)
		}
		if n, _ := q.Needs(ctx, []string{table}); err == nil && (n.Reserve != 0 || n.Grow <= 0 || n.Grow > all.Grow) {
			t.Errorf("with all streams: %+v", n)
		}
	}
}
