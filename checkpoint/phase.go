package checkpoint

// Phase is how far the reading of a shard has come, and whether the shard still takes writes.
type Phase uint8

// The phases of a shard, in their order. A shard waits until its parent is finished in the log
// (Rule 3).
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

// Reading reports whether the shard is to be read now: its parent is finished, and the shard is
// not.
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

// Begun returns the phase of a waiting shard once its parent is finished.
func (p Phase) Begun() Phase {
	if p == PhaseWaiting {
		return PhaseOpen
	}
	return PhaseClosed
}
