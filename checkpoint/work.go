package checkpoint

// Work is what is still to be done until Bigtable has the rows of all items, apart from applying
// the changes in the log. It ends by itself. A gap that nothing heals is no work: it waits for an
// operator, and so does the doubt that a copy of an unconfirmed export leaves.
type Work struct {
	Copy   CopyWork
	Resync ResyncWork
}

// CopyWork is what is still to be copied; "" for nothing.
type CopyWork string

// The copies.
const (
	CopyNone CopyWork = ""
	// CopyDue: the start requested a copy, which has no entry yet.
	CopyDue CopyWork = "due"
	// CopyRuns: a copy is not complete. It may be paused.
	CopyRuns CopyWork = "runs"
	// CopySwitch: another mapping was accepted, and the copy that writes the rows with it has no
	// entry yet.
	CopySwitch CopyWork = "switch"
)

// ResyncWork is what the pending resync of the whole table is for; "" if none is pending.
type ResyncWork string

// The resyncs.
const (
	ResyncNone ResyncWork = ""
	// ResyncRecovers: a lost log was recovered, and what it held is missing.
	ResyncRecovers ResyncWork = "recovers"
	// ResyncHeals: changes that gaps lost are missing.
	ResyncHeals ResyncWork = "heals"
	// ResyncCompares: nothing is known to be missing; an operator requested a comparison.
	ResyncCompares ResyncWork = "compares"
)

// Due reports whether a copy is to begin that has no entry in the log yet.
func (c CopyWork) Due() bool { return c == CopyDue || c == CopySwitch }

// Missing reports whether the resync brings what rows are known to lack.
func (r ResyncWork) Missing() bool { return r == ResyncRecovers || r == ResyncHeals }

// Unfinished returns what is still to be done until Bigtable has the rows of all items. It is the
// only judge of that question (Rule 14): waits, comparisons, cutovers, fences and status call it.
func (s *State) Unfinished() Work {
	return Work{Copy: s.copyWork(), Resync: s.resyncWork()}
}

func (s *State) copyWork() CopyWork {
	switch {
	case s.CopyRunning() != nil:
		return CopyRuns
	case s.CopyPending():
		return CopyDue
	case s.Accepting != nil || s.Switched != nil:
		return CopySwitch
	}
	return CopyNone
}

func (s *State) resyncWork() ResyncWork {
	switch p := s.Resync; {
	case p == nil:
		return ResyncNone
	case p.Recover:
		return ResyncRecovers
	case len(p.Gaps) > 0:
		return ResyncHeals
	}
	return ResyncCompares
}
