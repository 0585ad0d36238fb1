package describe

import (
	"fmt"
	"strings"

	"github.com/tailrace-cdc/replicator/transform"
)

// Query returns the definition of a materialized view over a table in Bigtable's SQL. The last part
// of the view's key is the row key of the source, as the service demands of a view without
// aggregation. Source: https://cloud.google.com/bigtable/docs/asynchronous-secondary-index
func Query(table string, v transform.View) string {
	names := &aliases{taken: map[string]bool{sourceKey: true}}
	var selected, wanted, order []string
	for _, c := range v.Key {
		name := names.unique(c)
		selected = append(selected, cellOf(c)+" AS "+quoted(name))
		wanted = append(wanted, cellOf(c)+" IS NOT NULL")
		order = append(order, quoted(name))
	}
	selected = append(selected, "_key AS "+quoted(sourceKey))
	for _, c := range v.Columns {
		selected = append(selected, cellOf(c)+" AS "+quoted(names.unique(c)))
	}
	return fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY %s", strings.Join(selected, ", "), quoted(table),
		strings.Join(wanted, " AND "), strings.Join(append(order, quoted(sourceKey)), ", "))
}

// sourceKey is the column of a view for the row key of its source.
const sourceKey = "source_key"

// cellOf returns the SQL of the newest value of a column.
func cellOf(c transform.Column) string {
	return quoted(c.Family) + "['" + strings.NewReplacer("\\", "\\\\", "'", "\\'").Replace(c.Qualifier) + "']"
}

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "\\`") + "`" }

// aliases hands out names for the columns of a view: the column's own with other characters
// replaced, with the family in front if that is taken.
type aliases struct{ taken map[string]bool }

// unique returns a free name for a column, and reserves it.
func (a *aliases) unique(c transform.Column) string {
	plain := func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r|32 >= 'a' && r|32 <= 'z' {
			return r
		}
		return '_'
	}
	name := strings.Map(plain, c.Qualifier)
	if a.taken[name] {
		name = strings.Map(plain, c.Family+"_"+c.Qualifier)
	}
	for a.taken[name] {
		name += "_"
	}
	a.taken[name] = true
	return name
}
