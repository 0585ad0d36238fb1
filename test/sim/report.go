package sim

import (
	"fmt"
	"strings"
)

// Violation names the invariant that a history breaks.
type Violation struct {
	Invariant string
	Detail    string
}

func (v *Violation) Error() string { return v.Invariant + ": " + v.Detail }

// fail ends the history: an invariant does not hold.
func (w *World) fail(invariant, format string, args ...any) {
	panic(&Violation{invariant, fmt.Sprintf(format, args...)})
}

// must ends the history because of an error that no history may lead to.
func (w *World) must(err error) {
	if err != nil {
		w.fail("no error", "%v", err)
	}
}

// logf notes what happens, for people.
func (w *World) logf(format string, args ...any) {
	if w.verbose {
		w.trace = append(w.trace, fmt.Sprintf("%9.3f ", float64(w.now-begin)/1000)+fmt.Sprintf(format, args...))
	}
}

// Trace returns what has happened, a line for each event.
func (w *World) Trace() string { return strings.Join(w.trace, "\n") }
