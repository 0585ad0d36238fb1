package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform"
)

// WayBack returns a sentence on whether a rule's rows can be turned back into items; "" for index
// rows.
func WayBack(r *transform.RowReport) string {
	switch {
	case r.Lossless:
		return "its rows can be turned back into their items"
	case r.Index:
		return ""
	}
	return "its rows cannot be turned back into their items: " + r.WhyNot
}

// AttributeUses counts attributes by what becomes of them, and names those that are written
// nowhere. each calls its argument with every attribute and its use: key, mapped, ignored or lost.
func AttributeUses(each func(yield func(attr, use string) bool)) string {
	attrs := map[string][]string{}
	for attr, use := range each {
		if !slices.Contains(attrs[use], attr) {
			attrs[use] = append(attrs[use], attr)
		}
	}
	var parts []string
	for _, x := range []struct{ use, wording string }{
		{"key", "in row keys"}, {"mapped", "written"}, {"ignored", "left out on purpose"}, {"lost", "written nowhere"},
	} {
		list := attrs[x.use]
		if len(list) == 0 {
			continue
		}
		part := fmt.Sprintf("%s %s", Count(len(list), "attribute"), x.wording)
		if x.use == "ignored" || x.use == "lost" {
			part += " (" + strings.Join(list, ", ") + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
