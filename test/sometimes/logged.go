package sometimes

import (
	"slices"
	"strings"
	"testing"
)

// Logged counts the branches that a test takes, and the branches that programs log when they take
// them. Nil counts nothing.
type Logged struct {
	*Counts
	texts []string // the names of the latter are what is logged
}

// NewLogged prints how often branches were reached once the histories of the test have ended. With
// enough histories the test fails where one never was: then what defends it was not tested.
func NewLogged(t testing.TB, histories, enough int, seen []string, texts ...string) *Logged {
	l := &Logged{Counts: New(slices.Concat(seen, texts)...), texts: texts}
	t.Cleanup(func() {
		t.Logf("%d histories took these branches so often:\n%s", histories, l.Table())
		if never := l.Never(); histories >= enough && len(never) > 0 {
			t.Errorf("no history took these branches:\n%s", strings.Join(never, "\n"))
		}
	})
	return l
}

// ReachedIf notes that a branch was reached if something is so.
func (l *Logged) ReachedIf(is bool, branch string) {
	if l != nil && is {
		l.Reached(branch)
	}
}

// Read counts what a program has logged; count returns how often it has logged a text.
func (l *Logged) Read(count func(text string) int) {
	if l == nil {
		return
	}
	for _, text := range l.texts {
		l.Add(text, uint64(count(text)))
	}
}
