package transform

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/lang"
)

// warnings are the codes of what a sensible mapping may mean as it is. A mapping without errors that acknowledges what
// is left has no warnings, so that a check which counts them as errors can be met.
var warnings = []string{"attribute", "binary_key", "cascade", "cells", "family_name", "hashed_key", "history", "hotspot", "match", "mixed_grammar", "order", "pii", "reads", "secret", "ttl", "unpadded"}

// acknowledge leaves out the warnings that the mapping's author knows about, and refuses acknowledgements of anything
// else: one that is no longer needed would hide the next warning of its kind.
func (c *compiler) acknowledge() {
	used := make([]bool, len(c.m.Acknowledged))
	c.ps.List = slices.DeleteFunc(c.ps.List, func(p Problem) (known bool) {
		for i, t := range c.m.Acknowledged {
			if lang.Acknowledges(t, p) {
				used[i], known = true, true
			}
		}
		return known
	})
	for i, t := range c.m.Acknowledged {
		switch near := lang.Nearest(t.S, warnings); {
		case !slices.Contains(warnings, t.S) && near != "":
			c.ps.Errorf(t, "value", "did you mean "+near+"?", "%q is not the code of a warning", t.S)
		case !slices.Contains(warnings, t.S):
			c.ps.Errorf(t, "value", "warnings of a mapping: "+strings.Join(warnings, ", "), "%q is not the code of a warning", t.S)
		case !used[i] && !c.ps.Failed() && t.S != "hotspot": // which samples may ask about as well
			c.ps.Warnf(t, "acknowledged", "remove it, or put it where the warning is, or above", "there is no warning %s here", t.S)
		}
	}
}
