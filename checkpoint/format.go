package checkpoint

import "slices"

// Format is the highest entry format that this build reads and writes, see formats.go (Rule 11). It
// never changes.
//
// The format of a log is decided by its first claim, and raised by a snapshot that carries the new number. Nothing of a
// newer format is stored before that, so a build that reads only older ones refuses the log instead of misreading it.
//
// To add a member to an entry: give it `omitempty`, and let FormatOf ask for its format when it is set. To add one
// to the state: let only such entries set it, or convert it in raiseFormat; then no snapshot of an older format has it.
// TestLaterMembersAskForTheirFormat and TestLogOfFormat1StaysReadableWithoutUpgrade hold both to it.
var Format = highestFormat(cappedFormat)

// FormatOf returns the lowest format that holds an entry with this body. The entry carries it, so that a log stays
// readable for an older build as long as it can be.
func FormatOf(body any) int {
	switch b := body.(type) {
	case *Claim:
		if b.Reads > 0 {
			return max(5, b.Format)
		}
		return max(1, b.Format)
	case *Release:
		if b.To != "" {
			return 5
		}
	case *Snapshot:
		return max(1, b.Format)
	case *Healed:
		return 3 + min(1, len(b.Exports))
	case *Copy:
		if b.Unconfirmed {
			return 5
		}
		return 3
	case *CopyMarks:
		return 3
	case *Frame:
		if slices.ContainsFunc(b.Pages, func(p PageHead) bool { return len(p.Expired) > 0 }) {
			return 4
		}
	case *Marks:
		if b.Archive != nil {
			return 4
		}
	case *Start:
		if b.Backfill != "" || b.Recover || b.After != 0 {
			return 3
		}
		if b.Part != 0 || b.Parts != 0 {
			return 2
		}
	case *Graph:
		if b.Enabled {
			return 5
		}
		if b.Delta || len(b.Absent) > 0 {
			return 2
		}
	case *Gap:
		if b.Doubt != "" || b.Canceled {
			return 5
		}
		if b.Above != 0 || b.Healed != nil {
			return 3
		}
		if b.Sinks != nil || b.Waived != nil {
			return 2
		}
	case *Beat:
		if b.Proven != 0 || b.Assumed != 0 {
			return 3
		}
	case *Control:
		if b.Certify != nil || b.Verified != nil || b.Halt != nil && b.Halt.Held {
			return 5
		}
		if b.Copy != nil || b.Resync != nil || b.Accept != nil || b.Fence != nil {
			return 3
		}
		if b.ClearSink != "" || b.Waive != nil {
			return 2
		}
	}
	return 1
}
