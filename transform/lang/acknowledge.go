package lang

import "strings"

// ackKey is the key under which an author names warnings that are known and meant so.
const ackKey = "acknowledged"

// Acknowledges says whether an acknowledgement covers a problem: it names a warning's code, and stands in the part of
// the file that the warning is about, or around it.
func Acknowledges(t Text, p Problem) bool {
	scope, _, _ := strings.Cut(t.Path, ackKey+"[")
	return p.Severity == SeverityWarning && p.Code == t.S && strings.HasPrefix(p.Path+".", scope)
}
