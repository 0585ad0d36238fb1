package lang

import (
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
)

// acknowledgedKey is the key under which an author lists codes of warnings that are intended.
const acknowledgedKey = "acknowledged"

// Acknowledges reports whether an acknowledgement covers a problem: the problem is a warning with
// that code, and its path lies in the block that has the acknowledgement.
func Acknowledges(t Text, p problem.Problem) bool {
	scope, _, _ := strings.Cut(t.Path, acknowledgedKey+"[")
	return p.Severity == problem.SeverityWarning && p.Code == t.S && strings.HasPrefix(p.Path+".", scope)
}
