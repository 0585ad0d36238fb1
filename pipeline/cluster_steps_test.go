package pipeline

import (
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

func TestClusterSteps(t *testing.T) {
	pending := func(id string) *checkpoint.PendingResync { return &checkpoint.PendingResync{ID: id} }
	last := func(id string) *checkpoint.Healed { return &checkpoint.Healed{ID: id} }
	for _, x := range []struct {
		what     string
		now, row string
		pending  *checkpoint.PendingResync
		last     *checkpoint.Healed
		want     clusterStep
	}{
		{"first start", "a", "", nil, nil, clusterToNote},
		{"no change", "a", "a", nil, nil, clusterAgrees},
		{"no change during another resync", "a", "a", pending("gap-1"), nil, clusterAgrees},
		{"fail-over", "b", "a", nil, last("gap-1"), clusterToOrder},
		{"fail-over during a resync that began before", "b", "a", pending("gap-1"), nil, clusterToOrder},
		{"ordered", "b", "a", pending("cluster-b-1"), nil, clusterToAwait},
		{"complete, not noted before a crash", "b", "a", nil, last("cluster-b-1"), clusterToNote},
		{"complete, and another one is pending", "b", "a", pending("gap-2"), last("cluster-b-1"), clusterToOrder},
		{"back before the resync was complete", "a", "a", pending("cluster-b-1"), nil, clusterToOrder},
		{"resync of an earlier fail-over", "b", "a", nil, last("cluster-a-1"), clusterToOrder},
	} {
		if got := nextClusterStep(x.now, x.row, x.pending, x.last); got != x.want {
			t.Errorf("%s: step %d, want %d", x.what, got, x.want)
		}
	}
}
