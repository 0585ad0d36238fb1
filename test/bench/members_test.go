package bench

import (
	"testing"
	"time"
)

// BenchmarkMembers carries changes of ten tables with one member and with two, which share the
// tables evenly before. It reports changes per second while all tables have some, the CPU of the
// members for a change, and how much of a core a member uses; of two members also how many times
// the rate of one they reach, and its price.
//
// Bigtable is a null server that needs 50 ms for each write, so that what limits a member is how
// many writes it has in flight, and not its processor: on a machine of two cores, which runs all
// servers besides, more than that cannot be shown. A member has 256 workers, half of which are
// divided between the tables that it carries (pipeline/apply/workers.go).
func BenchmarkMembers(b *testing.B) {
	for range b.N {
		l := load{tables: 10, items: 24_000, rounds: 1}
		rate, price := l.members(b, "one", 10)
		two, price2 := l.members(b, "two", 5, 5)
		b.ReportMetric(two/rate, "times_rate")
		b.ReportMetric(price2/price, "times_cpu")
		b.ReportMetric(0, "ns/op")
	}
}

// writeLatency is how long the null server needs for a write.
const writeLatency = 50 * time.Millisecond

// members carries the load with members that have so many tables each, and returns the changes per
// second, and the microseconds of CPU for a change.
func (l load) members(b *testing.B, name string, shares ...int) (rate, price float64) {
	b.Helper()
	g := newGroup(b, l, 4)
	for range shares {
		g.start(writeLatency)
	}
	g.share(shares...)
	before, begun := g.processorTime(), time.Now()
	l.round(b, g.sb, g.rnd, 1)
	// From here to nine tenths every table has changes that wait.
	first, began := g.calls(), time.Now()
	last := l.changes() * 9 / 10
	g.until("most changes are applied", 5*time.Minute, func() bool { return g.calls() >= last })
	rate = float64(g.calls()-first) / time.Since(began).Seconds()
	g.until("all changes are applied", 5*time.Minute, func() bool { return g.calls() >= l.changes() })
	used, wall := g.processorTime()-before, time.Since(begun)
	g.stop()
	price = float64(used.Microseconds()) / float64(l.changes())
	b.ReportMetric(rate, name+"_records/s")
	b.ReportMetric(price, name+"_cpu_µs/record")
	b.ReportMetric(used.Seconds()/wall.Seconds()/float64(len(shares)), name+"_cores/member")
	return rate, price
}
