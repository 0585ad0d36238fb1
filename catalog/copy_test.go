package catalog

import (
	"errors"
	"testing"

	"github.com/tailrace-cdc/replicator/config"
)

// TestShareOfACapacityThatATableHasNotIsRefused: of a table on demand 25 % is nothing. Before a run
// begins, and when a running pipeline compiles a table that could not be described then.
func TestShareOfACapacityThatATableHasNotIsRefused(t *testing.T) {
	for _, c := range []struct {
		billing     string
		provisioned float64
		units       config.Units
		refused     bool
	}{
		{"PAY_PER_REQUEST", 0, config.Units{Percent: 25}, true},
		{"PAY_PER_REQUEST", 0, config.Units{Absolute: 25}, false},
		{"PAY_PER_REQUEST", 0, config.Units{}, false},
		{"PROVISIONED", 100, config.Units{Percent: 25}, false},
		{"", 0, config.Units{Percent: 25}, false}, // not described
	} {
		written := table("T", "t", "", "pk:S")
		written.Backfill.ReadUnits = c.units
		all, _ := Parse(configured(written))
		all.Tables[0].Info.BillingMode, all.Tables[0].Info.ReadUnits = c.billing, c.provisioned
		p := all.Settings()
		if (len(p) > 0) != c.refused || c.refused && p[0].Path != "tables[0].backfill.read_units" {
			t.Errorf("%s of %s: %v, want refused %v", c.units, c.billing, p, c.refused)
		}
		all.Tables[0].TakeDeclaredKey()
		_, err := CompileTable(t.Context(), all.cfg, nil, written, all.Tables[0].Info)
		var bad *ProblemsError
		if (err != nil) != c.refused || c.refused && (!errors.As(err, &bad) || bad.Problems[0].Path != p[0].Path) {
			t.Errorf("%s of %s, described later: %v, want refused %v", c.units, c.billing, err, c.refused)
		}
	}
}
