package status

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Rehearsed is what the newest rehearsal of a cutover of a target has shown, as the command has
// published it. Nothing stores it: a process that was started since does not have it.
type Rehearsed struct {
	Target    string             `json:"target"`
	At        time.Time          `json:"at"`
	Refusals  []string           `json:"refusals"`     // empty: nothing refuses
	WriteStop float64            `json:"write_stop_s"` // expected; 0: not every step was rehearsed
	Steps     map[string]float64 `json:"steps"`        // seconds
}

// Sentence returns it in words.
func (r *Rehearsed) Sentence() string {
	text := fmt.Sprintf("Cutover of %s rehearsed %s UTC: ", r.Target, r.At.UTC().Format("2006-01-02 15:04"))
	if len(r.Refusals) > 0 {
		return text + "it would be refused: " + strings.Join(r.Refusals, "; ")
	}
	return text + fmt.Sprintf("%.0f s of write stop expected, nothing refuses", r.WriteStop)
}

// Rehearsals remembers the newest rehearsal of each target. Its zero value is ready for use, by any
// number of goroutines.
type Rehearsals struct {
	mu  sync.Mutex // covers what follows
	all map[string]Rehearsed
}

// Bounds of what is kept: it comes from outside of the process, and each step is a series of
// metrics.
const (
	mostRehearsals = 1000   // targets
	mostSteps      = 16     // of a rehearsal
	mostRefusals   = 16     // likewise
	longestText    = 1000   // bytes of a refusal or a name
	longestStep    = 604800 // seconds: a week
	rehearsalSkew  = time.Hour
)

// check returns what is wrong with a rehearsal that a message contained.
func (r *Rehearsed) check(now time.Time) error {
	switch {
	case r.Target == "" || len(r.Target) > longestText:
		return errors.New("it names no target, or a very long one")
	case r.At.After(now.Add(rehearsalSkew)):
		return errors.New("its time is in the future")
	case len(r.Refusals) > mostRefusals || len(r.Steps) > mostSteps:
		return errors.New("it has too many refusals or steps")
	case r.WriteStop < 0 || r.WriteStop > longestStep:
		return errors.New("its write stop is out of range")
	}
	for _, text := range r.Refusals {
		if len(text) > longestText {
			return errors.New("one of its refusals is too long")
		}
	}
	for name, seconds := range r.Steps {
		if len(name) > longestText || seconds < 0 || seconds > longestStep {
			return errors.New("one of its steps is out of range")
		}
	}
	return nil
}

// Cut returns the rehearsal with as many refusals, and as much of each, as Note takes.
func (r *Rehearsed) Cut() Rehearsed {
	cut := *r
	cut.Refusals = []string{}
	for i, text := range r.Refusals {
		if more := len(r.Refusals) - i; i == mostRefusals-1 && more > 1 {
			cut.Refusals = append(cut.Refusals, fmt.Sprintf("%d further reasons", more))
			break
		}
		cut.Refusals = append(cut.Refusals, strings.ToValidUTF8(text[:min(len(text), longestText)], ""))
	}
	return cut
}

// Note keeps a rehearsal that a message contained, or returns why not.
func (r *Rehearsals) Note(x Rehearsed, now time.Time) error {
	if err := x.check(now); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]Rehearsed{}
	}
	if old, known := r.all[x.Target]; known && old.At.After(x.At) || !known && len(r.all) == mostRehearsals {
		return nil
	}
	r.all[x.Target] = x
	return nil
}

// All returns them by target.
func (r *Rehearsals) All() (all []Rehearsed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.all {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b Rehearsed) int { return cmp.Compare(a.Target, b.Target) })
	return all
}
