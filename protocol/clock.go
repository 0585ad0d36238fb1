package protocol

import "time"

// Instant is a moment on both clocks of a process. The monotonic clock stands still while the
// machine is suspended, and the wall clock may be set.
type Instant struct {
	Wall time.Time
	Mono time.Duration // since a moment that all instants share which are compared
}

// InstantOf returns the instant of a time that time.Now has given. Mono counts from the time begin.
func InstantOf(t, begin time.Time) Instant { return Instant{Wall: t.Round(0), Mono: t.Sub(begin)} }

// Since returns how long an earlier instant is ago: the larger of the two clocks' values.
func (i Instant) Since(earlier Instant) time.Duration {
	return max(i.Wall.Sub(earlier.Wall), i.Mono-earlier.Mono)
}
