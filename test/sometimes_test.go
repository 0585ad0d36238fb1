package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/test/sometimes"
)

// chances counts how often the histories of a test reach what they seldom reach.
type chances struct {
	*sometimes.Counts
	logged []string // the branches that a daemon logs, by the text that it logs
}

// guardRefuses is the branch that the tap before Bigtable sees.
const guardRefuses = "a write is refused by its guard"

// newChances prints how often branches were reached, those that the test sees and those that a daemon logs, once the
// histories of the test have ended. With enough histories the test fails where one never was: then what defends it was
// not tested.
func newChances(t *testing.T, histories, enough int, seen []string, logged ...string) *chances {
	c := &chances{Counts: sometimes.New(slices.Concat([]string{guardRefuses}, seen, logged)...), logged: logged}
	t.Cleanup(func() {
		t.Logf("%d histories took these branches so often:\n%s", histories, c.Table())
		if never := c.Never(); histories >= enough && len(never) > 0 {
			t.Errorf("no history took these branches:\n%s", strings.Join(never, "\n"))
		}
	})
	return c
}

// reachedIf notes that a branch was reached if something is so.
func (c *chances) reachedIf(is bool, branch string) {
	if c != nil && is {
		c.Reached(branch)
	}
}

// read counts what a daemon has logged.
func (c *chances) read(output string) {
	if c == nil {
		return
	}
	for _, text := range c.logged {
		c.Add(text, uint64(strings.Count(output, text)))
	}
}
