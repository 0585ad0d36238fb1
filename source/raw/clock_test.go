package raw

import (
	"math/rand/v2"
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
	observe(12_000, after(1000), after(9000))   // long under way
	read(9000, 19_992)                          // our seconds may be shorter than the service's
	observe(15_000, after(9900), after(10_000)) // and here they are
	read(10_000, 19_992)                        // it never decreases
	read(14_000, 19_992)
	read(16_000, 20_994)
}

// TestCallCountsAsSentWhenItWas: with a reply each 200 ms a call counts as sent at most so much too
// early, although Dates are cut to seconds. It never counts as sent later than it was, also when our
// clock runs too fast and replies take long. Only where the service's clock is set back by less than
// a second, it may for the second in which no Date shows that.
func TestCallCountsAsSentWhenItWas(t *testing.T) {
	for _, rate := range []float64{0.9995, 1, 1.0005} { // of our clock, by the service's
		random := rand.New(rand.NewPCG(1, 1))
		var c Clock
		began := time.Now()
		service := func(at time.Duration) float64 { return 1e12 + 123 + float64(at.Microseconds())/1000/rate }
		back := 0.0
		for at := time.Duration(0); at < 10*time.Minute; at += 200 * time.Millisecond {
			if at == 5*time.Minute {
				back = 700
			}
			took := time.Duration(random.ExpFloat64() * float64(20*time.Millisecond))
			written := service(at+took/2) - back
			requested, _ := c.Observe(Timing{
				Sent: began.Add(at), Replied: began.Add(at + took), Server: time.UnixMilli(int64(written) / 1000 * 1000),
			})
			early := service(at) - back - float64(requested)
			settling := back > 0 && at < 5*time.Minute+time.Second
			if early < 0 && !settling || at > time.Second && !settling && early > 500 {
				t.Fatalf("rate %v, %v: a call counts as sent %.0f ms before it was", rate, at, early)
			}
		}
	}
}
