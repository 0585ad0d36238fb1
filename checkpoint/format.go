package checkpoint

import (
	"fmt"
	"strconv"
)

// Format is the highest entry format that this build reads and writes (Rule 11). It never changes
// while a program runs.
//
// The format of a log is decided by its first claim, and raised by a snapshot that carries the new
// number. Nothing of a newer format is stored before that, so a build that reads only older ones
// refuses the log instead of misreading it.
//
// To add a member to an entry: give it `omitempty`, and let FormatOf return its format when it is
// set. To add one to the state: let only such entries set it, or convert it in raiseFormat; then no
// snapshot of an older format has it. TestLaterMembersNeedTheirFormat holds both to it.
var Format = highestFormat(newerFormat)

// newestFormat is the highest entry format that the code reads and writes.
//
//	1  all that version 0.1.0 stores
const newestFormat = 1

// newerFormat raises Format by one in a build for tests that stands for a newer one:
//
//	go build -ldflags '-X github.com/tailrace-cdc/replicator/checkpoint.newerFormat=2' ./cmd/replicator
//
// In a log of its format such a build writes Beat.Invented, which no older build reads. No release
// sets it.
var newerFormat string

// highestFormat returns the newest format, or the one after it in a build that stands for a newer
// one.
func highestFormat(newer string) int {
	if n, err := strconv.Atoi(newer); err == nil && n == newestFormat+1 {
		return n
	}
	return newestFormat
}

// FormatOf returns the lowest format that holds an entry with this body. The entry carries it, so
// that a log stays readable for an older build as long as it can be.
func FormatOf(body any) int {
	switch b := body.(type) {
	case *Claim:
		return max(1, b.Format)
	case *Snapshot:
		return max(1, b.Format)
	case *Beat:
		if b.Invented {
			return 2
		}
	}
	return 1
}

// InventedMember returns what Beat.Invented is in a beat for this log.
func (s *State) InventedMember() bool { return s.Format > newestFormat }

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
