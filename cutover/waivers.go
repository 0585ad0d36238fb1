package cutover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/verify"
)

// waivesColumn begins the name of a waiver of one column: columns:RULE/FAMILY:COLUMN.
const waivesColumn = "columns:"

// unknownWaivers lists accepted columns that no mapping of the target can have written. Otherwise a
// misspelled column would be found only when both sides were compared, with the writers stopped.
func (c *Cutover) unknownWaivers() (reasons []string) {
	places := map[string]bool{} // RULE/FAMILY
	for _, t := range c.pair.Tables {
		for _, r := range t.Program.Report() {
			for _, f := range t.Program.Families() {
				places[r.Rule+"/"+f.Name] = true
			}
		}
	}
	for _, name := range c.Accept {
		column, ok := strings.CutPrefix(name, waivesColumn)
		place, _, named := strings.Cut(column, ":")
		if !ok || !named || !places[place] {
			reasons = append(reasons, fmt.Sprintf("--accept %s names no column of a rule: it is %sRULE/FAMILY:COLUMN, and "+
				"begins with one of %s", name, waivesColumn, strings.Join(slices.Sorted(maps.Keys(places)), ", ")))
		}
	}
	return reasons
}

// accepts returns the waivers that cover a cell without a certain owner; none if it is not covered.
// Every rule that may have written the cell must be accepted.
func (c *Cutover) accepts(o *verify.Open) (names []string) {
	if o.Kind != verify.Unowned {
		return nil
	}
	for _, rule := range o.Rules {
		name := fmt.Sprintf("%s%s/%s:%s", waivesColumn, rule, o.Family, o.Qualifier)
		if !slices.Contains(c.Accept, name) {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// ages returns the source tables with mappings that let cells age away. The certificate needs
// --accept-aged for them, because Bigtable may lack what their items still have.
func (c *Cutover) ages() (names []string) {
	for _, t := range c.pair.Tables {
		for _, f := range t.Program.Families() {
			if f.MaxAge > 0 {
				names = append(names, t.Source)
				break
			}
		}
	}
	return names
}
