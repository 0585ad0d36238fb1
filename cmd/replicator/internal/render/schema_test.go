package render

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/settings"
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
		{
			tableschema.Difference{
				Kind: tableschema.WrongRule, Table: "orders", Family: "d", Have: "maxage=1d", Want: "never",
				Keeps: 24 * time.Hour, Needs: tableschema.Forever,
			},
			"orders:d: has maxage=1d, needs never: cells are deleted that the mapping keeps",
			"orders:d: changed from maxage=1d to never",
		},
		{
			tableschema.Difference{
				Kind: tableschema.WrongRule, Table: "orders", Family: "_tr_live", Have: "maxage=1d", Want: "maxversions=1",
				Keeps: 24 * time.Hour, Needs: tableschema.Forever,
			},
			"orders:_tr_live: has maxage=1d, needs maxversions=1: items lose their guards, so that an older change could " +
				"replace a newer one; `run` writes nothing to Bigtable",
			"orders:_tr_live: changed from maxage=1d to maxversions=1",
		},
	} {
		if lacking, made := settings.DifferenceText(c.d), Made(c.d); lacking != c.lacking || made != c.made {
			t.Errorf("%q and %q, want %q and %q", lacking, made, c.lacking, c.made)
		}
	}
}
