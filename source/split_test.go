package source

import (
	"container/heap"
	"slices"
	"testing"
	"time"
)

// split is a way of dividing the total among tables: the part of each, in bytes of the total.
type split struct {
	name string
	part func(total, tables int64) int64
}

var splits = []split{
	{"half in parts", func(total, tables int64) int64 { return total / 2 / tables }}, // as New has it
	{"all in parts", func(total, tables int64) int64 { return total / tables }},      // the simplest: nothing is common
	{"a page each", func(total, tables int64) int64 { return min(reservation, total/tables) }},
}

func (s split) budget(total int64, tables int) *PageMemory {
	b := NewPageMemory(total, 8<<20, reservation, tables)
	b.part = s.part(total, int64(tables))
	b.common = total - b.part*int64(tables)
	return b
}

// clock is a virtual clock with the events to come.
type clock struct {
	now   time.Duration
	queue events
}

type event struct {
	at time.Duration
	do func()
}

type events []event

func (q events) Len() int           { return len(q) }
func (q events) Less(i, j int) bool { return q[i].at < q[j].at }
func (q events) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)        { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

func (c *clock) after(d time.Duration, do func()) { heap.Push(&c.queue, event{c.now + d, do}) }

func (c *clock) run(until time.Duration) {
	for len(c.queue) > 0 && c.queue[0].at <= until {
		e := heap.Pop(&c.queue).(event)
		c.now = e.at
		e.do()
	}
}

// reader reads one feed for ever: it waits for memory, for a call of read, and until the page has
// been appended.
type reader struct {
	feed         *FeedMemory
	bytes        int64         // of each page
	read, append time.Duration // append < 0: the log is full, pages are never released
	pause        time.Duration // between two reads
	pages        int
	waits        []time.Duration
}

func (r *reader) next(c *clock) {
	due, l := c.now, r.feed.Lease()
	granted := func() {
		r.waits = append(r.waits, c.now-due)
		c.after(r.read, func() {
			r.pages++
			l.Settle(r.bytes)
			if r.append >= 0 {
				c.after(r.append, l.Release)
			}
			c.after(r.pause, func() { r.next(c) })
		})
	}
	if l.Reserve(granted) {
		granted()
	}
}

// BenchmarkBusyAmongTwenty compares the splits in virtual time: a busy table of 64 shards with full
// pages among 19 tables of four shards with small pages five times a second; in one case the log of
// one of these is full. It reports the throughput of the busy table, and how long the others wait
// for memory.
//
// Without a common half the busy table has a tenth of the throughput. With a page each it has a
// third more, but where there are few tables, a table whose log is full would leave the others a
// page each for hours.
func BenchmarkBusyAmongTwenty(b *testing.B) {
	const tables, total, span = 20, 96 << 20, 20 * time.Second
	cases := []struct {
		name   string
		append time.Duration
		full   bool // the log of the second table
	}{
		{"append=10ms", 10 * time.Millisecond, false},
		{"append=100ms", 100 * time.Millisecond, false},
		{"append=10ms,full=1", 10 * time.Millisecond, true},
	}
	for _, test := range cases {
		for _, s := range splits {
			b.Run(test.name+"/"+s.name, func(b *testing.B) {
				var mbps, p99, worst, slowest float64
				for b.Loop() {
					c, budget := new(clock), s.budget(total, tables)
					var busy, others []*reader
					for i := range 64 {
						start := time.Duration(i) * time.Millisecond
						r := &reader{feed: budget.Feed("busy"), bytes: 5 << 18, read: 30 * time.Millisecond, append: test.append}
						busy = append(busy, r)
						c.after(start, func() { r.next(c) })
						if test.full {
							full := &reader{feed: budget.Feed("full"), bytes: 5 << 18, read: 30 * time.Millisecond, append: -1}
							c.after(start, func() { full.next(c) })
						}
					}
					for i := range 4 * (tables - 2) {
						r := &reader{
							feed: budget.Feed(string(rune('A' + i/4))), bytes: 200 << 10, read: 8 * time.Millisecond,
							append: test.append, pause: 200 * time.Millisecond,
						}
						others = append(others, r)
						c.after(time.Duration(i)*time.Millisecond, func() { r.next(c) })
					}
					c.run(span)
					mbps, p99, worst, slowest = measure(busy, others, span)
				}
				b.ReportMetric(mbps, "busy-MB/s")
				b.ReportMetric(p99, "others-p99-ms")
				b.ReportMetric(worst, "others-max-ms")
				b.ReportMetric(slowest, "others-least-pages/s")
			})
		}
	}
}

// measure returns the throughput of the busy readers in MB/s, and of the others how long they
// waited for memory (99 of a hundred, and at most) in ms and the fewest pages a second that one of
// them read.
func measure(busy, others []*reader, span time.Duration) (mbps, p99, worst, slowest float64) {
	for _, r := range busy {
		mbps += float64(r.pages) * float64(r.bytes) / 1e6 / span.Seconds()
	}
	var waits []time.Duration
	slowest = float64(others[0].pages)
	for _, r := range others {
		waits = append(waits, r.waits...)
		slowest = min(slowest, float64(r.pages))
	}
	slices.Sort(waits)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return mbps, ms(waits[len(waits)*99/100]), ms(waits[len(waits)-1]), slowest / span.Seconds()
}
