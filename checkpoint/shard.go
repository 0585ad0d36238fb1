package checkpoint

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
)

// Shard is the state of one shard, as the log records it.
type Shard struct {
	ID     string
	Stream string
	Parent string
	Pos    change.Position
	Clock  change.Version // of the last change
	Loss   Loss           // of changes that were lost before they were read

	// A beat changes these of every open shard, so they are adjacent in memory.
	Phase     Phase
	Watermark change.Millis // everything created up to here was read
	LastAlive change.Millis // it took writes then or later, so its children's changes are newer

	FirstSeen   change.Millis // date of the listing that showed it first
	AbsentSince change.Millis // date of the first complete listing without it since one showed it
	FinishedAt  change.Millis // service clock when it was finished

	// Unended means that the shard was finished, by a gap, although no listing had shown its end or
	// a child of it. SeenOpen means that a listing begun afterwards shows it without either: it may
	// live, and it is not read.
	Unended, SeenOpen bool

	inIndex indexState
}

// Loss describes changes of a shard that were lost before they were read.
type Loss struct {
	Pending       bool          // the shard stands before a gap that is not accepted: it is not read
	AtTrimHorizon bool          // its last gap is accepted, and ends where the trim horizon is at the next read
	AcceptedUntil change.Millis // losses of changes created before this time are accepted; 0 = none was
}

// close notes that the shard takes no more writes.
func (sh *Shard) close() {
	switch sh.Phase {
	case PhaseWaiting:
		sh.Phase = PhaseWaitingClosed
	case PhaseOpen:
		sh.Phase = PhaseClosed
	}
	sh.Unended, sh.SeenOpen = false, false
}

// skipLoss makes the reading of a shard continue at its trim horizon. The loss of changes created
// before until is accepted.
func (sh *Shard) skipLoss(until change.Millis) {
	sh.Pos, sh.Loss.AtTrimHorizon, sh.Loss.AcceptedUntil = change.Position{}, true, until
}

// String describes a shard for people.
func (sh *Shard) String() string {
	return fmt.Sprintf("%s %s after %q", sh.ID, sh.Phase, sh.Pos.After)
}
