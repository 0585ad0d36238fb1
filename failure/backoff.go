package failure

import (
	"math/rand/v2"
	"time"
)

const (
	firstBackoff = 100 * time.Millisecond
	// LongestBackoff is what Backoff doubles up to, before it is jittered.
	LongestBackoff = 10 * time.Second
)

// Backoff returns the pause after the n-th failure in a row.
func Backoff(n int) time.Duration { return Jittered(min(firstBackoff<<min(n-1, 10), LongestBackoff)) }

// Jittered returns a pause between half and one and a half of d. Without it, callers that are
// throttled at the same moment would retry at the same moment, and all but the first would be
// throttled again.
func Jittered(d time.Duration) time.Duration { return d/2 + rand.N(d) }
