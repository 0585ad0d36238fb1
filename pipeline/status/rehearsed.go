package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Rehearsed is what the newest rehearsal of a cutover of a target has shown, as the command has told
// this process. Nothing stores it: a process that was started since does not have it.
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

// mostRehearsals bounds the targets: what is told comes from outside of the process.
const mostRehearsals = 1000

// Note notes a rehearsal.
func (r *Rehearsals) Note(x Rehearsed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]Rehearsed{}
	}
	if old, known := r.all[x.Target]; known && old.At.After(x.At) || !known && len(r.all) == mostRehearsals {
		return
	}
	r.all[x.Target] = x
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
