package pipe

import (
	"reflect"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/tailrace-cdc/replicator/bulk/comparison"
	"github.com/tailrace-cdc/replicator/bulk/worker"
	"github.com/tailrace-cdc/replicator/verify/distributed"
)

// TestLongStagesHaveAnOutput: Prism keeps a core busy with nothing while a bundle runs in a stage
// without one.
func TestLongStagesHaveAnOutput(t *testing.T) {
	p, s := beam.NewPipelineWithRoot()
	Copy(s, worker.Place{}, 3)
	Compare(s, comparison.Place{}, &distributed.Plan{Tables: []distributed.Table{{}}})
	edges, _, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[reflect.Type]int{}
	for _, e := range edges {
		if e.DoFn != nil {
			outputs[reflect.TypeOf(e.DoFn.Recv)] = len(e.Output)
		}
	}
	for _, stage := range []any{&copyFile{}, &projectFile{}, &compareRange{}} {
		if n := outputs[reflect.TypeOf(stage)]; n != 1 {
			t.Errorf("%T has %d outputs", stage, n)
		}
	}
}
