package render

import (
	"fmt"
	"strings"

	"github.com/tailrace-cdc/replicator/pipeline/settings"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

// Made says what was made or changed so that a table or family is as the mapping needs it.
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

// Difference formats a table or family that the Bigtable instance lacks, or has with other settings than the mapping
// needs, and says what a wrong rule does.
func Difference(d tableschema.Difference) string {
	name := d.Table
	if d.Family != "" {
		name += ":" + d.Family
	}
	if d.Have == "missing" {
		return strings.TrimSuffix(fmt.Sprintf("%s is missing (%s)", name, d.Want), " (table)")
	}
	text := fmt.Sprintf("%s: has %s, needs %s", name, d.Have, d.Want)
	switch p := settings.Family(d); {
	case p.Unsafe:
		text += ": " + p.Cost + "; `run` writes nothing to Bigtable"
	case p.Cost != "":
		text += ": " + p.Cost
	}
	return text
}
