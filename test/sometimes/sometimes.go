// Package sometimes counts how often tests reach the branches that are seldom taken. A defence can be removed unseen
// where no test ever needs it, so a test that draws what happens at random fails when one of its branches was not
// reached.
//
// Files, from the top down:
//
//	logged.go     branches that programs log
//	sometimes.go  the counts
package sometimes

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Counts counts how often each of some branches was reached. Nil counts nothing. Goroutines may
// share it.
type Counts struct {
	names []string
	n     []atomic.Uint64
	index map[string]int
}

// New returns the counts of branches, which have names for people.
func New(names ...string) *Counts {
	c := &Counts{names: names, n: make([]atomic.Uint64, len(names)), index: make(map[string]int, len(names))}
	for i, name := range names {
		c.index[name] = i
	}
	return c
}

// Reached notes that a branch was reached, which New must have named.
func (c *Counts) Reached(name string) { c.Add(name, 1) }

// Add notes that a branch was reached several times.
func (c *Counts) Add(name string, times uint64) {
	if c == nil {
		return
	}
	i, ok := c.index[name]
	if !ok {
		panic("no such branch: " + name)
	}
	c.n[i].Add(times)
}

// Never returns the branches that were not reached, in the order of New.
func (c *Counts) Never() []string {
	return slices.DeleteFunc(slices.Clone(c.names), func(name string) bool { return c.n[c.index[name]].Load() > 0 })
}

// Table returns a line for each branch: how often it was reached.
func (c *Counts) Table() string {
	var b strings.Builder
	for i, name := range c.names {
		fmt.Fprintf(&b, "%10d  %s\n", c.n[i].Load(), name)
	}
	return b.String()
}
