package compile

import (
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// validFamily reports whether Bigtable accepts a name for a column family.
func validFamily(name string) bool {
	for i := range len(name) {
		ch := name[i]
		if ch != '-' && ch != '_' && ch != '.' && (ch < '0' || ch > '9') && (ch|32 < 'a' || ch|32 > 'z') {
			return false
		}
	}
	return name != ""
}

// compileFamilies declares the mapping's families in the draft.
func (c *compiler) compileFamilies() {
	for i := range c.Mapping.Families {
		f := &c.Mapping.Families[i]
		if !validFamily(f.At.S) {
			c.Problems.Errorf(f.At, "family_name", "letters, digits, - _ and . only",
				"%q is not a valid name for a column family",
				f.At.S)
		}
		if strings.HasPrefix(f.At.S, "_tr_") {
			c.Problems.Errorf(f.At, "family_name", "choose another name",
				"families that begin with _tr_ hold the replicator's markers")
		}
		removed := f.Removed.S
		if removed == "" {
			removed = "delete"
		}
		fam := &ir.FamilyRule{Family: ir.Family{Name: f.At.S, MaxVersions: f.MaxVersions, MaxAge: f.MaxAge,
			Intersection: f.Combine.S == "intersection", Aggregate: f.Aggregate.S},
			History: f.MaxVersions != 1 && f.Aggregate.S == "" && !f.Expires, Expires: f.Expires, Removed: removed, At: f.At}
		c.checkAggregateKind(f)
		c.AddFamily(fam)
	}
}

// checkAggregateKind refuses unknown aggregates, and sum, where a change that is delivered twice
// would count twice.
func (c *compiler) checkAggregateKind(f *lang.Family) {
	switch f.Aggregate.S {
	case "", "max", "min", "hll":
	case "sum":
		c.Problems.Errorf(f.Aggregate, "aggregate", "write one column per shard and add them up on reading; max works for "+
			"counters that only grow",
			"sums need the difference of two images, and a difference that is delivered twice counts twice")
	default:
		c.Problems.Errorf(f.Aggregate, "aggregate", "max, min or hll", "aggregate %q is not supported", f.Aggregate.S)
	}
}
