package render

import (
	"testing"

	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

func TestSchemaThatWasMadeIsNotSaidToBeMissing(t *testing.T) {
	for _, c := range []struct {
		d             tableschema.Difference
		lacking, made string
	}{
		{tableschema.Difference{Table: "orders", Have: "missing", Want: "table"}, "orders is missing", "orders: made"},
		{tableschema.Difference{Table: "orders", Family: "d", Have: "missing", Want: "maxversions=1"},
			"orders:d is missing (maxversions=1)", "orders:d: made (maxversions=1)"},
		{tableschema.Difference{Table: "orders", Family: "d", Have: "none", Want: "maxversions=1"},
			"orders:d: has none, needs maxversions=1", "orders:d: changed from none to maxversions=1"},
	} {
		if lacking, made := Difference(c.d), Made(c.d); lacking != c.lacking || made != c.made {
			t.Errorf("%q and %q, want %q and %q", lacking, made, c.lacking, c.made)
		}
	}
}
