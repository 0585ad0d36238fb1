package render

import (
	"testing"
	"time"
)

// TestTimesAreInUTC whatever the zone of the machine is: JSON and logs have the same times.
func TestTimesAreInUTC(t *testing.T) {
	zone := time.FixedZone("away", 5*3600)
	at := time.Date(2026, 11, 22, 4, 3, 21, 0, zone)
	if got, want := Time(at), "2026-11-21 23:03:21 UTC"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := ClockTime(at), "2026-11-21 23:03:21 UTC"; got != want {
		t.Errorf("another day: %q, want %q", got, want)
	}
	now := time.Now().Add(time.Millisecond).In(zone)
	if got, want := ClockTime(now), now.UTC().Format("15:04:05Z"); got != want {
		t.Errorf("today: %q, want %q", got, want)
	}
	if GapTime(nil) != "unknown" || GapTime(new(time.Time)) != "the beginning" {
		t.Error("a gap without an end has no time")
	}
}
