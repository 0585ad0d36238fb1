package sandbox

import (
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
)

// Watch is how a test waits for a fact without a fixed deadline: the wait ends once nothing has
// moved for Patience, so a busy machine makes a test slower but does not break it. The zero value
// of each field is a default.
type Watch struct {
	// Progress returns a number that changes whenever the system under test moves on. nil: nothing
	// renews the deadline.
	Progress func() uint64
	// Err returns an error once waiting is pointless, for example because the system under test has
	// ended. nil: never.
	Err func() error
	// State returns what a failed wait prints. nil: nothing.
	State func() any

	Patience time.Duration // longest wait while Progress stands still; default one minute
	Longest  time.Duration // longest wait in all; default fifteen times Patience
	Every    time.Duration // longest pause after a quick check, in a wait of eight times as long; default 10 ms
}

// withDefaults returns the watch with its unset fields set to their defaults.
func (w Watch) withDefaults() Watch {
	if w.Progress == nil {
		w.Progress = func() uint64 { return 0 }
	}
	if w.Err == nil {
		w.Err = func() error { return nil }
	}
	if w.State == nil {
		w.State = func() any { return "" }
	}
	if w.Patience == 0 {
		w.Patience = time.Minute
	}
	if w.Longest == 0 {
		w.Longest = 15 * w.Patience
	}
	w.Every = max(w.Every, checkEvery)
	return w
}

const (
	checkEvery = 10 * time.Millisecond
	checkRest  = 250 * time.Millisecond // the longest pause
)

// Until blocks until condition returns true, and checks it every 10 ms, in a long wait at the pace
// of Every; after a check that took longer it rests as long, up to a quarter of a second, so that
// the system under test has time. what describes the condition, as in "every change is applied".
// When the wait fails it ends the test, so call it on the test's own goroutine.
func (w Watch) Until(t TB, what string, condition func() bool) {
	t.Helper()
	w = w.withDefaults()
	began := time.Now()
	moved, progress := began, w.Progress()
	for now := began; !condition(); {
		quick := min(w.Every, max(checkEvery, time.Since(began)/8))
		if err := clock.Pause(t.Context(), max(quick, min(checkRest, time.Since(now)))); err != nil {
			t.Fatalf("waiting until %s: the test ended: %v", what, err)
		}
		if err := w.Err(); err != nil {
			t.Fatalf("waiting until %s: %v", what, err)
		}
		now = time.Now()
		if p := w.Progress(); p != progress {
			moved, progress = now, p
		}
		if idle, all := now.Sub(moved), now.Sub(began); idle > w.Patience || all > w.Longest {
			t.Fatalf("waited %v until %s, the last %v without progress; state: %+v",
				all.Round(time.Millisecond), what, idle.Round(time.Millisecond), w.State())
		}
	}
}
