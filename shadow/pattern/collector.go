package pattern

import (
	"sync"
	"time"
)

const (
	maxPatterns = 200   // of one table; the others count as Other
	maxTables   = 1_000 // of one instance; patterns of further ones count as Other without a table
)

// Answer is what was measured of the answer to a request.
type Answer struct {
	Bytes  int64 // of its body
	Took   time.Duration
	Failed bool // its status is not 200: neither bytes nor time are counted
}

// Collector counts the patterns of one instance. It is safe for concurrent use.
type Collector struct {
	mu       sync.Mutex
	requests int64
	counts   map[string]*Count
	tables   map[string]int // how many patterns each has
	skipped  map[Reason]int64
}

// NewCollector returns a collector without counts.
func NewCollector() *Collector {
	return &Collector{counts: map[string]*Count{}, tables: map[string]int{}, skipped: map[Reason]int64{}}
}

// Add counts a request. An answer to a batch of several tables counts for each of them as a whole.
func (c *Collector) Add(r Request, a Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if r.Skipped != "" {
		c.skipped[r.Skipped]++
		return
	}
	for i := range r.Uses {
		count := c.count(&r.Uses[i].Pattern)
		count.Requests++
		count.Keys += int64(r.Uses[i].Keys)
		if a.Failed {
			count.Failed++
			continue
		}
		count.Bytes.Add(a.Bytes)
		count.Micros.Add(a.Took.Microseconds())
	}
}

// Replay has f count what became of replayed reads of a pattern.
func (c *Collector) Replay(p *Pattern, f func(*Replay)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := c.count(p)
	if count.Replay == nil {
		count.Replay = &Replay{}
	}
	f(count.Replay)
}

// count returns the count of a pattern, or of the others together where the collector is full.
func (c *Collector) count(p *Pattern) *Count {
	id := p.ID()
	if n := c.counts[id]; n != nil {
		return n
	}
	n, known := c.tables[p.Table]
	switch {
	case !known && len(c.tables) >= maxTables:
		return c.others("")
	case n >= maxPatterns:
		return c.others(p.Table)
	}
	c.tables[p.Table]++
	c.counts[id] = &Count{Pattern: *p}
	return c.counts[id]
}

// others returns the count of the patterns of a table that have none of their own.
func (c *Collector) others(table string) *Count {
	p := Pattern{Kind: Other, Table: table}
	id := p.ID()
	if c.counts[id] == nil {
		c.counts[id] = &Count{Pattern: p}
	}
	return c.counts[id]
}

// Snapshot returns the counts so far.
func (c *Collector) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Snapshot{Format: snapshotFormat, Requests: c.requests}
	for _, n := range c.counts {
		s.Patterns = append(s.Patterns, n.clone())
	}
	for reason, n := range c.skipped {
		s.skip(reason, n)
	}
	s.sort()
	return s
}
