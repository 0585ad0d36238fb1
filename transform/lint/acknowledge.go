package lint

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Warnings are the codes of what a sensible mapping may mean as it is. A mapping without errors that acknowledges what
// is left has no warnings, so that a check which counts them as errors can be met.
var Warnings = []string{"attribute", "binary_key", "cascade", "cells", "family_name", "hashed_key", "history",
	"hotspot", "match", "mixed_grammar", "order", "pii", "reads", "secret", "ttl", "unpadded"}

// acknowledge leaves out the warnings that the mapping's author knows about, and refuses acknowledgements of anything
// else: one that is no longer needed would hide the next warning of its kind.
func (c *linter) acknowledge() {
	used := make([]bool, len(c.Mapping.Acknowledged))
	c.Problems.List = slices.DeleteFunc(c.Problems.List, func(p problem.Problem) (known bool) {
		for i, t := range c.Mapping.Acknowledged {
			if lang.Acknowledges(t, p) {
				used[i], known = true, true
			}
		}
		return known
	})
	for i, t := range c.Mapping.Acknowledged {
		switch near := problem.Nearest(t.S, Warnings); {
		case !slices.Contains(Warnings, t.S) && near != "":
			c.Problems.Errorf(t, "value", "did you mean "+near+"?", "%q is not the code of a warning", t.S)
		case !slices.Contains(Warnings, t.S):
			c.Problems.Errorf(t, "value", "warnings of a mapping: "+strings.Join(Warnings, ", "),
				"%q is not the code of a warning", t.S)
		case !used[i] && !c.Problems.Failed() && t.S != "hotspot": // which samples may ask about as well
			c.Problems.Warnf(t, "acknowledged", "remove it, or put it where the warning is, or above",
				"there is no warning %s here", t.S)
		}
	}
}
