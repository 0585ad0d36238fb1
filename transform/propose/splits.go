package propose

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// A new table is one tablet, served by one node until Bigtable splits it, but a backfill needs many
// nodes from its first minute. Split keys are hints: Bigtable merges and splits tablets by their
// load. Source: https://cloud.google.com/bigtable/docs/managing-tables#splits
const (
	splitSize   = 1 << 30 // bytes of the source per tablet: a tablet is some GB
	minParts    = 10
	maxParts    = 100 // the most that the service recommends
	rowsPerPart = 10  // sampled rows that a part needs
)

// Parts returns into how many tablets to divide a table with sources of this many bytes.
func Parts(bytes int64) int {
	return int(min(max(bytes/splitSize, minParts), maxParts))
}

// Splits returns up to parts-1 keys that divide sampled rows into parts of equal size. Each is the
// shortest prefix of a row that sorts after the rows before it, and so reveals as little of a key
// as possible. A small sample gives fewer keys, and one below twenty rows none.
func Splits(rows [][]byte, parts int) (out [][]byte) {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, bytes.Compare)
	sorted = slices.CompactFunc(sorted, bytes.Equal)
	parts = min(parts, len(sorted)/rowsPerPart)
	for i := 1; i < parts; i++ {
		at := i * len(sorted) / parts
		out = append(out, separator(sorted[at-1], sorted[at]))
	}
	return out
}

// separator returns the shortest prefix of b that sorts after a; in text it ends at a character.
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
