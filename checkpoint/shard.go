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

	inIndex indexState
}

// Phase is how far the reading of a shard has come, and whether the shard still takes writes.
type Phase uint8

// The phases of a shard, in their order. A shard waits until its parent is finished in the log (Rule 3).
const (
	PhaseWaiting       Phase = iota + 1
	PhaseWaitingClosed       // waiting, and takes no more writes
	PhaseOpen                // may be read
	PhaseClosed              // may be read, and takes no more writes
	PhaseEarly               // finished by a gap before its parent was finished: its children go on waiting
	PhaseFinished            // read to its end, or the rest of it was lost
)

// Waiting reports whether the parent must be finished before the shard is read.
func (p Phase) Waiting() bool { return p == PhaseWaiting || p == PhaseWaitingClosed }

// Reading reports whether the shard is to be read now: its parent is finished, and the shard is not.
func (p Phase) Reading() bool { return p == PhaseOpen || p == PhaseClosed }

// Finished reports whether nothing is left to read.
func (p Phase) Finished() bool { return p >= PhaseEarly }

// Closed reports whether the shard takes no more writes.
func (p Phase) Closed() bool { return p != PhaseWaiting && p != PhaseOpen }

// String returns waiting, open or finished: the words of the stored form.
func (p Phase) String() string {
	switch {
	case p.Waiting():
		return "waiting"
	case p.Reading():
		return "open"
	case p.Finished():
		return "finished"
	}
	return "unknown"
}

// begun returns the phase of a waiting shard once its parent is finished.
func (p Phase) begun() Phase {
	if p == PhaseWaiting {
		return PhaseOpen
	}
	return PhaseClosed
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
}

// skipLoss makes the reading of a shard continue at its trim horizon. The loss of changes created before until is
// accepted.
func (sh *Shard) skipLoss(until change.Millis) {
	sh.Pos, sh.Loss.AtTrimHorizon, sh.Loss.AcceptedUntil = change.Position{}, true, until
}

// String describes a shard for people.
func (sh *Shard) String() string {
	return fmt.Sprintf("%s %s after %q", sh.ID, sh.Phase, sh.Pos.After)
}
