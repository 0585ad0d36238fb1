package propose

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// A new table is one tablet, and one node serves it until Bigtable has split it; a backfill wants many nodes from
// its first minute. Split keys are hints: Bigtable merges and splits tablets as it sees the load.
// Source: https://cloud.google.com/bigtable/docs/managing-tables#splits
const (
	splitSize  = 1 << 30 // bytes of the source per tablet: a tablet is some GB
	leastParts = 10
	mostParts  = 100 // what the service recommends as the most
	perPart    = 10  // sampled rows that a part must be founded on
)

// Parts is into how many tablets a table is divided whose sources hold so many bytes.
func Parts(bytes int64) int {
	return int(min(max(bytes/splitSize, leastParts), mostParts))
}

// Splits returns up to parts-1 keys that cut sampled rows into parts of equal numbers: each the shortest
// beginning of a row that keeps the rows before it out, so that it shows as little of a key as it must. There are
// fewer where the sample is too small to tell, and none below twenty rows.
func Splits(rows [][]byte, parts int) (out [][]byte) {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, bytes.Compare)
	sorted = slices.CompactFunc(sorted, bytes.Equal)
	parts = min(parts, len(sorted)/perPart)
	for i := 1; i < parts; i++ {
		at := i * len(sorted) / parts
		out = append(out, separator(sorted[at-1], sorted[at]))
	}
	return out
}

// separator is the shortest beginning of b that sorts after a; in text it ends at a character.
func separator(a, b []byte) []byte {
	n := 0
	for n < len(a) && a[n] == b[n] {
		n++
	}
	n++
	if utf8.Valid(b) {
		for n < len(b) && !utf8.RuneStart(b[n]) {
			n++
		}
	}
	return b[:n]
}
