package shadow

import (
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// WhyNotReplayed returns the reason for which reads were not replayed, in words.
func WhyNotReplayed(why pattern.Reason) string {
	words := map[pattern.Reason]string{
		replay.Failed:     "DynamoDB refused them, or the connection was cut",
		replay.Large:      "they return more than 1 MiB or 10,000 rows",
		replay.Busy:       "too many others wait",
		replay.NoMapping:  "the table is not replicated",
		replay.NoRead:     "no rows serve them",
		replay.Declared:   "only the author of `reads` can make their key",
		replay.NoKey:      "the mapping makes no row key of their values",
		replay.Projection: "they return a part of the attributes",
		replay.Unreadable: "the answer cannot be read",
		replay.Ended:      "the run ended first",
		replay.Bigtable:   "Bigtable could not be read",
	}
	if text, ok := words[why]; ok {
		return text
	}
	return string(why)
}

// WhyNoPattern returns the reason for which requests have no pattern, in words.
func WhyNoPattern(why pattern.Reason) string {
	switch why {
	case pattern.NotItems:
		return "their operation reads and writes no items"
	case pattern.BadJSON:
		return "their body is no JSON object"
	case pattern.BadTable:
		return "they name no table"
	case pattern.BadKey:
		return "their key is not the table's"
	case pattern.BadExpression:
		return "their expression cannot be read"
	case TooLarge:
		return "their body is longer than 1 MiB, or cannot be unpacked"
	}
	return string(why)
}

// MismatchName returns a kind of mismatches in words, in the plural.
func MismatchName(kind string) string {
	switch kind {
	case replay.Outside:
		return "items whose row is not in the range"
	case replay.Order:
		return "rows in another order than the items"
	}
	return report.KindName(verify.Kind(kind))
}
