package apply

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// BenchmarkOpenDeadLetters walks over the dead letters of a table, of records of 1 KB, as the owner
// does before it applies. The server is in this process. It reports milliseconds, and CPU for a
// letter with the server's.
func BenchmarkOpenDeadLetters(b *testing.B) {
	for _, n := range []int{0, 100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("letters=%d", n), func(b *testing.B) {
			log := letteredLog(b, n)
			shared := NewShared(Limits{Memory: 64 << 20, Lanes: 8, Calls: 8}, nil, func() change.Millis { return benchBegin })
			o := Options{
				Life:  &life.Life{Source: "Sessions", Log: log, Logger: zap.NewNop()},
				Stats: NewMetrics(nil).Table("Sessions", zap.NewNop()),
			}
			before := cpuTime()
			for b.Loop() {
				l, err := OpenDeadLetters(b.Context(), shared, o)
				if err != nil || l.Count() != n {
					b.Fatal(l.Count(), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms")
			b.ReportMetric(float64(cpuTime()-before)/1e3/float64(max(n, 1)*b.N), "cpu_µs/letter")
		})
	}
}

// letteredLog returns a log with so many dead letters. Its server syncs nothing, so that it has
// them soon.
func letteredLog(b *testing.B, n int) *queue.Log {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: "bench", Host: "127.0.0.1", Port: server.RANDOM_PORT, MaxPayload: 8 << 20, JetStream: true,
		StoreDir: b.TempDir(), NoSigs: true, NoLog: true, JetStreamMaxStore: 1 << 40,
	})
	must(err)
	srv.Start()
	b.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(time.Minute) {
		b.Fatal("nats is not ready")
	}
	q, err := queue.Open(b.Context(), queue.Options{Pipeline: "bench", URL: srv.ClientURL()}, zap.NewNop(),
		prometheus.NewRegistry())
	must(err)
	b.Cleanup(func() { _ = q.Close() })
	log, err := q.CreateLog(b.Context(), "Sessions", "token")
	must(err)
	stored, err := log.DeadLetters(b.Context())
	must(err)
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(64)
	for i := range n {
		g.Go(func() error { return putLetter(ctx, stored, i) })
	}
	must(g.Wait())
	return log
}

func putLetter(ctx context.Context, stored *deadletter.Store, i int) error {
	rnd := rand.New(rand.NewPCG(1, uint64(i)))
	var text strings.Builder
	for text.Len() < 900 {
		fmt.Fprintf(&text, "%016x", rnd.Uint64())
	}
	raw := fmt.Appendf(nil, `{"pk":{"S":"session#%d"},"text":{"S":"%s"}}`, i, &text)
	c := &change.Change{
		Feed: change.Feed{Stream: benchStream, Shard: benchShard(i % benchShards)}, Version: change.Version(1 + i),
		SequenceNumber: change.SequenceNumber(fmt.Sprintf("%021d", i)), Created: benchBegin, KeyHash: uint64(i / 2),
		Raw: raw,
	}
	letter := deadletter.New("Sessions", checkpoint.SinkBigtable, c, bigtable.CodeRowKey, "the row key is empty",
		time.Now())
	return stored.Put(ctx, letter)
}
