package pipe

import (
	"reflect"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/tailrace-cdc/replicator/bulk/worker"
)

// TestCopyHasAnOutput: Prism keeps a core busy with nothing for as long as files are copied in a
// stage without one.
func TestCopyHasAnOutput(t *testing.T) {
	p, s := beam.NewPipelineWithRoot()
	Copy(s, worker.Place{}, 3)
	edges, _, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range edges {
		if e.DoFn == nil || reflect.TypeOf(e.DoFn.Recv) != reflect.TypeFor[*copyFile]() {
			continue
		}
		if found = true; len(e.Output) != 1 {
			t.Errorf("copyFile has %d outputs", len(e.Output))
		}
	}
	if !found {
		t.Error("no stage copies files")
	}
}
