package bench

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// BenchmarkHandOver ends the owner of a table, which is written all the time, beside a member that
// stands by. It reports milliseconds from the moment when the owner reads no more until the other
// member has claimed the log, and until that one's first write arrives at Bigtable, a null server.
// Of the owner it reports the time from the signal to that moment.
//
// Where there are 10,000 shards an idle one is asked every ten seconds instead of each second: two
// cores cannot run both sides of 10,000 reads a second.
func BenchmarkHandOver(b *testing.B) {
	for _, x := range []struct {
		shards int
		poll   string
	}{{4, "1s"}, {100, "1s"}, {10_000, "10s"}} {
		b.Run(fmt.Sprintf("shards=%d", x.shards), func(b *testing.B) {
			for range b.N {
				load{tables: 1, items: 1000, poll: x.poll}.handOver(b, x.shards)
			}
		})
	}
}

// settles is longer than a member that has begun to stand by listens to the others.
const settles = 8 * time.Second

func (l load) handOver(b *testing.B, shards int) {
	b.Helper()
	g := newGroup(b, l, shards)
	owner := g.start(0)
	g.share(1)
	rest := g.writeSome(5 * time.Millisecond)
	defer rest()
	g.until("all shards were read", 5*time.Minute, func() bool {
		pages, _ := sample(owner.metrics, "tailrace_source_pages_total{")
		return pages > float64(2*shards)
	})
	next := g.start(0)
	g.share(1, 0)
	<-time.After(settles)
	signal := time.Now()
	stop(b, owner.cmd)
	g.until("the next owner writes", 2*time.Minute, func() bool { return next.front.first.Load() != nil })
	ends := owner.logged(b, "no more reading", sourceName(0))
	claimed := next.logged(b, "log claimed", sourceName(0))
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(ends.Sub(signal)), "ms_to_end_of_reading")
	b.ReportMetric(ms(claimed.Sub(ends)), "ms_to_claim")
	b.ReportMetric(ms(next.front.first.Load().Sub(ends)), "ms_to_first_write")
	b.ReportMetric(0, "ns/op")
	rest()
	g.stop()
}

// writeSome changes an item of some table every period until rest is called.
func (g *group) writeSome(every time.Duration) (rest func()) {
	ended, end := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		rnd := rand.New(rand.NewPCG(2, 2))
		for n := 1; ; n++ {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			i := n % g.load.items
			if err := g.sb.DynamoDB.Put(sourceName(i%g.load.tables), g.load.item(rnd, i, n)); err != nil {
				g.b.Error(err)
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(end)
		<-ended
	})
}
