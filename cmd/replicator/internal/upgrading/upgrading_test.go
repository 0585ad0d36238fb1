package upgrading

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/pipeline/rollout"
)

// TestOwnersThatAreHeardSayWhatTheyRead, where their claims do not: nobody takes over what another one reads.
func TestOwnersThatAreHeardSayWhatTheyRead(t *testing.T) {
	claimed := func(owner string, reads int) log { return log{Claim: rollout.Claim{Owner: owner, Reads: reads}} }
	r := report{Logs: []log{claimed("a", 0), claimed("b", 5), claimed("c", 0), claimed("", 0)}}
	r.fill([]rollout.Member{{Owner: "a", Reads: 4}, {Owner: "b", Reads: 6}})
	var reads []int
	for i := range r.Logs {
		reads = append(reads, r.Logs[i].Reads)
	}
	if diff := cmp.Diff([]int{4, 5, 0, 0}, reads); diff != "" {
		t.Error(diff)
	}
}
