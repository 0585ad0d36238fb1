package lint

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// lintRow warns of row keys that make a table slow or hard to read.
func (c *linter) lintRow(pl *ir.Plan, main bool) {
	at := *pl.Src
	if name, capture, filters, ok := pl.Row.First(); ok && main {
		attr := capture.Attr
		if attr == "" {
			attr = name
		}
		switch {
		case looksLikeTime(name) || looksLikeTime(attr) || slices.Contains(filters, "iso_ms") ||
			slices.Contains(filters, "s_ms"):
			c.Problems.Warnf(at, "hotspot", "put an id with many values first: \"{id}#{"+name+"}\"",
				"rows begin with a time: all new rows go to one place")
		case (capture.Type == 'N' && capture.All || capture.Kind == lang.Digits) && !slices.Contains(filters, "revstr"):
			c.Problems.Warnf(at, "hotspot", "{"+name+"|revstr} spreads sequential numbers; if they are not sequential: "+
				"acknowledged: [hotspot]", "rows begin with a number: if it grows with time, all new rows go to one place")
		}
	}
	pl.Row.References(func(name string, capture tmpl.Capture, filters []string) {
		// DynamoDB sorts digits in a text as text too, and no partition key by its value.
		number := capture.All && capture.Type == 'N' && capture.Attr != c.Program.Table.Schema.Partition.Name
		ordered := slices.ContainsFunc(filters, func(f string) bool {
			return slices.Contains([]string{"pad", "ordnum",
				"revms", "rev64", "revstr", "day", "hour"}, f)
		})
		if number && !ordered {
			c.Problems.Warnf(at, "unpadded", "{"+name+"|pad(10)} for non-negative integers, {"+name+"|ordnum} for any number",
				"{%s} is a number, by which DynamoDB sorts: as text 9 sorts after 10", name)
		}
		if capture.All && capture.Type == 'B' && len(filters) == 0 {
			c.Problems.Warnf(at, "binary_key", "{"+name+"|hex}", "{%s} puts raw bytes into the row key, which tools cannot show",
				name)
		}
		for _, f := range filters {
			if (f == "hash" || f == "hmac") && !c.Personal[capture.Attr] {
				c.Problems.Warnf(at, "hashed_key", "for personal data list the attribute under pii; where the order is not "+
					"wanted: acknowledged: [hashed_key]", "{%s|%s} hides the value: rows cannot be read in its order", name, f)
			}
		}
	})
}

func looksLikeTime(name string) bool {
	n := strings.ToLower(name)
	for _, s := range []string{"timestamp", "datetime", "created", "updated", "time", "date"} {
		if strings.HasPrefix(n, s) || strings.HasSuffix(n, s) {
			return true
		}
	}
	return n == "ts" || strings.HasSuffix(n, "_at")
}
