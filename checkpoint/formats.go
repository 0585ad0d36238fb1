package checkpoint

import (
	"fmt"
	"strconv"
)

// newestFormat is the highest entry format that the code reads and writes.
//
//	1  claim, release, start, graph, frame, beat, marks, gap, control, snapshot
//	2  starts in parts, listings of only what is new, the format in claims and snapshots, a halt per sink, and the
//	   sinks that lack what a gap lost
//	3  copies of the table and resyncs of it, starts with a backfill or after a lost log, accepted mappings, fences,
//	   proofs
//	4  counts of expired items, the end of the archive's manifests, and gaps healed from exports
//	5  releases that name the next owner, claims that say which formats their build reads, changes behind a fence, that
//	   a cutover was certified, copies of exports that are unconfirmed, and the comparisons that end that doubt
const newestFormat = 5

// cappedFormat lowers Format in a build for tests that stands for an older one:
//
//	go build -ldflags '-X github.com/tailrace-cdc/replicator/checkpoint.cappedFormat=4' ./cmd/replicator
//
// Such a build refuses newer logs and writes older ones as an older build does. No release sets it.
var cappedFormat string

// highestFormat returns the newest format, or the lower one at which a build is capped.
func highestFormat(to string) int {
	if n, err := strconv.Atoi(to); err == nil && n >= 1 && n < newestFormat {
		return n
	}
	return newestFormat
}

// NewerFormatError means that a newer build wrote the entry. Rule 11: it is refused, not guessed
// at.
type NewerFormatError struct{ Need, Reads int }

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("entry has format %d, this build reads up to %d: upgrade the replicator", e.Need, e.Reads)
}

// FormatError means that an entry needs a newer format than its log has.
type FormatError struct{ Need, Have int }

func (e *FormatError) Error() string {
	return fmt.Sprintf("the entry needs format %d and the log has format %d: once no older replicator of this pipeline "+
		"runs, `replicator upgrade --finalize` raises it", e.Need, e.Have)
}
