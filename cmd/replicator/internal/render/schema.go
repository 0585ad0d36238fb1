package render

import (
	"fmt"
	"strings"

	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// Made lists what was made or changed so that a table or family is as the mapping needs it.
func Made(d tableschema.Difference) string {
	name := d.Table
	if d.Family != "" {
		name += ":" + d.Family
	}
	if d.Have == "missing" {
		return strings.TrimSuffix(fmt.Sprintf("%s: made (%s)", name, d.Want), " (table)")
	}
	return fmt.Sprintf("%s: changed from %s to %s", name, d.Have, d.Want)
}
