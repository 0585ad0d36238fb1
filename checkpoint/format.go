package checkpoint

// Format is the highest entry format that this build reads and writes, see formats.go (Rule 11). It
// never changes while a program runs.
//
// The format of a log is decided by its first claim, and raised by a snapshot that carries the new
// number. Nothing of a newer format is stored before that, so a build that reads only older ones
// refuses the log instead of misreading it.
//
// To add a member to an entry: give it `omitempty`, and let FormatOf return its format when it is
// set. To add one to the state: let only such entries set it, or convert it in raiseFormat; then no
// snapshot of an older format has it. TestLaterMembersNeedTheirFormat holds both to it.
var Format = highestFormat(newerFormat)

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
