package render

import (
	"fmt"
	"strings"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// Difference formats a table or family that the Bigtable instance lacks, or has with other settings than the mapping
// needs.
func Difference(d bigtable.Difference) string {
	name := d.Table
	if d.Family != "" {
		name += ":" + d.Family
	}
	if d.Have == "missing" {
		return strings.TrimSuffix(fmt.Sprintf("%s is missing (%s)", name, d.Want), " (table)")
	}
	return fmt.Sprintf("%s: has %s, needs %s", name, d.Have, d.Want)
}
