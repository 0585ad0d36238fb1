package lint

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Warnings are the codes of all warnings that an author can acknowledge, because the mapping may be
// intended as it is. With acknowledgements every mapping without errors can pass a check that
// counts warnings as errors.
var Warnings = []string{"attribute", "binary_key", "cascade", "cells", "family_name", "hashed_key", "history",
	"hotspot", "match", "mixed_grammar", "order", "pii", "reads", "secret", "ttl", "unpadded"}

// acknowledge drops the warnings that the mapping acknowledges. It refuses acknowledgements of
// unknown codes, and warns of those that cover no warning, because they would hide the next warning
// with that code.
func (c *linter) acknowledge() {
	used := make([]bool, len(c.Mapping.Acknowledged))
	c.Problems.List = slices.DeleteFunc(c.Problems.List, func(p problem.Problem) (acknowledged bool) {
		for i, t := range c.Mapping.Acknowledged {
			if lang.Acknowledges(t, p) {
				used[i], acknowledged = true, true
			}
		}
		return acknowledged
	})
	for i, t := range c.Mapping.Acknowledged {
		switch near := problem.Nearest(t.S, Warnings); {
		case !slices.Contains(Warnings, t.S) && near != "":
			c.Problems.Errorf(t, "value", "did you mean "+near+"?", "%q is not the code of a warning", t.S)
		case !slices.Contains(Warnings, t.S):
			c.Problems.Errorf(t, "value", "warnings of a mapping: "+strings.Join(Warnings, ", "),
				"%q is not the code of a warning", t.S)
		case !used[i] && !c.Problems.Failed() && t.S != "hotspot": // may be for a row that only a sample warns of
			c.Problems.Warnf(t, "acknowledged", "remove it, or put it where the warning is, or above",
				"there is no warning %s here", t.S)
		}
	}
}
