package raw

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

func TestServiceClock(t *testing.T) {
	var c Clock
	at := time.Now()
	if _, ok := c.Read(at); ok {
		t.Fatal("known before the first reply")
	}
	after := func(ms int64) time.Time { return at.Add(time.Duration(ms) * time.Millisecond) }
	observe := func(date int64, sent, replied time.Time) {
		c.Observe(Timing{Sent: sent, Replied: replied, Server: time.UnixMilli(date)})
	}
	read := func(now, want int64) {
		t.Helper()
		if ms, _ := c.Read(after(now)); ms != change.Millis(want) {
			t.Fatalf("%d ms after the first reply the clock reads %d, want %d", now, ms, want)
		}
	}
	observe(10_000, at, at)
	observe(10_000, after(800), after(900)) // the same second
	read(900, 10_900)
	observe(12_000, after(900), after(1000)) // later than thought
	read(1000, 12_000)
	observe(12_000, after(1000), after(9000)) // long under way
	read(9000, 20_000)
	observe(15_000, after(9900), after(10_000)) // our second is shorter than the service's
	read(10_000, 20_000)                        // it never decreases
	read(13_000, 20_000)
	read(14_000, 20_100)
}
