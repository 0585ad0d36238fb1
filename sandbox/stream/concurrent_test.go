package stream_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestNothingIsLostWhileShardsSplitUnderLoad commits, splits, lists, reads, trims and
// saves at the same time, then checks the deliveries against the ledger.
func TestNothingIsLostWhileShardsSplitUnderLoad(t *testing.T) {
	r := newRig(t, 4)
	var writers, others errgroup.Group
	const items, changes = 16, 300
	for i := range items {
		writers.Go(func() error {
			for n := 1; n <= changes; n++ {
				r.put(fmt.Sprint("item", i), n)
			}
			return nil
		})
	}
	done := make(chan struct{})
	for _, work := range []func(){
		func() { _, _ = r.e.Split(r.e.OpenShards("Orders")[0], 2) },
		func() { r.e.Rotate("Orders") },
		func() { r.e.Handle("DescribeStream", fmt.Appendf(nil, `{"StreamArn":%q}`, r.arn)) },
		func() { r.drain(r.list(nil).StreamDescription.Shards[0].ShardId) },
		func() { r.e.Sweep(); r.e.Trim(r.clock.Now().Add(-time.Hour)) },
		func() { _ = r.e.Save(io.Discard) },
	} {
		others.Go(func() error {
			for range 30 {
				select {
				case <-done:
					return nil
				default:
					work()
				}
			}
			return nil
		})
	}
	_ = writers.Wait()
	close(done)
	_ = others.Wait()
	if v := r.ledger.Check(r.deliveries()); !v.Exact || v.Committed != items*changes {
		t.Errorf("verdict %+v", v)
	}
}
