package preflight

import (
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// TestMissingTablesAreOneFinding: one command makes all of them, so its hint stands there once.
func TestMissingTablesAreOneFinding(t *testing.T) {
	got := schemaFindings([]tableschema.Difference{
		{Table: "cart", Have: "missing", Want: "table"},
		{Table: "log", Family: "d", Have: "never", Want: "versions()=1"},
		{Table: "user", Family: "d", Have: "missing", Want: "versions()=1"},
	})
	want := []string{"cart is missing; user:d is missing (versions()=1)", "log:d: has never, needs versions()=1"}
	if len(got) > 1 {
		got[1] = got[1][:min(len(got[1]), len(want[1]))] // what it costs stands behind it
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
