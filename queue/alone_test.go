package queue

import (
	"sync"
	"testing"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// TestOneLogHasATarget: of logs for one target there is one, in a cluster also of those that are made at the same
// moment over two connections. The same log may be made by both; that of another target is another matter.
func TestOneLogHasATarget(t *testing.T) {
	queues := map[string]func(t *testing.T) (a, b *Queue){
		"embedded": func(t *testing.T) (a, b *Queue) {
			q := embeddedQueue(t)
			return q, q
		},
		"cluster": func(t *testing.T) (a, b *Queue) {
			long(t, "starting three servers takes seconds")
			c := startCluster(t)
			three := func(o *Options) { o.Replicas = 3 }
			return connectTo(t, c.addr(), three), connectTo(t, c.addr(), three)
		},
	}
	for name, open := range queues {
		t.Run(name, func(t *testing.T) {
			a, b := open(t)
			ctx := testContext(t)
			var wg sync.WaitGroup
			errs := make([]error, 4)
			for i, of := range []struct {
				q     *Queue
				table string
			}{{a, "Orders"}, {b, "orders"}, {b, "Orders"}, {a, "orders"}} {
				wg.Go(func() {
					_, errs[i] = of.q.CreateLog(ctx, of.table, "t0ken", "shop-orders")
				})
				if a == b { // a server alone may take both of two that arrive within the same microseconds
					wg.Wait()
				}
			}
			wg.Wait()
			tables, err := a.Tables(ctx)
			if err != nil || len(tables) != 1 {
				t.Fatalf("logs of %v, %v; %v", tables, err, errs)
			}
			taken := 0
			for i, err := range errs {
				if first := i%2 == 0; first != (tables[0] == "Orders") && conn.Taken(err) {
					taken++
				} else if first == (tables[0] == "Orders") && err != nil {
					t.Errorf("the same log: %v", err)
				}
			}
			if taken != 2 {
				t.Errorf("%v", errs)
			}
			if _, err := b.CreateLog(ctx, "Orders.eu", "t0ken", "shop.orders"); err != nil {
				t.Errorf("another target: %v", err)
			}
		})
	}
}
