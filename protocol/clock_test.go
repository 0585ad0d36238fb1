package protocol

import (
	"testing"
	"time"
)

// TestInstantIsAsOldAsEitherClockSays: a clock that stands still or is set back never makes a
// moment younger.
func TestInstantIsAsOldAsEitherClockSays(t *testing.T) {
	wall := time.Unix(1_800_000_000, 0)
	then := Instant{Wall: wall, Mono: time.Hour}
	for name, c := range map[string]struct {
		now  Instant
		want time.Duration
	}{
		"both clocks go":              {Instant{wall.Add(time.Minute), time.Hour + time.Minute}, time.Minute},
		"the machine was suspended":   {Instant{wall.Add(time.Minute), time.Hour}, time.Minute},
		"the wall clock was set back": {Instant{wall.Add(-time.Hour), time.Hour + time.Minute}, time.Minute},
		"the wall clock was set on":   {Instant{wall.Add(time.Hour), time.Hour + time.Minute}, time.Hour},
	} {
		if ago := c.now.Since(then); ago != c.want {
			t.Errorf("%s: %s ago, want %s", name, ago, c.want)
		}
	}
	began := time.Now()
	sent := began.Add(time.Second)
	if ago := InstantOf(sent.Add(time.Minute), began).Since(InstantOf(sent, began)); ago != time.Minute {
		t.Errorf("a minute later it is %s ago", ago)
	}
}
