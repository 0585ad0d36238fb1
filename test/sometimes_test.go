package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/test/sometimes"
)

// chances counts how often the histories of a test reach what they seldom reach.
type chances = sometimes.Logged

// guardRefuses is the branch that the tap before Bigtable sees.
const guardRefuses = "a write is refused by its guard"

// newChances returns chances that the tap before Bigtable counts, too.
func newChances(t *testing.T, histories, enough int, seen []string, logged ...string) *chances {
	return sometimes.NewLogged(t, histories, enough, slices.Concat([]string{guardRefuses}, seen), logged...)
}

// countLogged counts what a daemon has logged.
func countLogged(c *chances, output string) {
	c.Read(func(text string) int { return strings.Count(output, text) })
}
