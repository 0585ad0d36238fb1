package source

import (
	"sync"
	"time"
)

const (
	throttleBegins = 5 * time.Second  // a single throttled read is normal
	throttleEnds   = 30 * time.Second // after the last throttled read
)

// Throttles remembers since when the reads of tables are throttled, again and again. Its zero value
// is ready for use.
type Throttles struct {
	mu     sync.Mutex // covers tables
	tables map[string]throttle
}

type throttle struct{ since, last time.Time }

// Note notes a throttled read.
func (t *Throttles) Note(table string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.tables[table]
	if now.Sub(x.last) > throttleEnds {
		x.since = now
	}
	x.last = now
	if t.tables == nil {
		t.tables = map[string]throttle{}
	}
	t.tables[table] = x
}

// Since returns when the throttling began that goes on; false where there is none.
func (t *Throttles) Since(table string, now time.Time) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x, known := t.tables[table]
	return x.since, known && now.Sub(x.last) <= throttleEnds && x.last.Sub(x.since) >= throttleBegins
}
