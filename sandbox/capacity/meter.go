// Package capacity counts the read units that tables consume, second by second, and refuses reads
// beyond a limit as DynamoDB does. Without a limit nothing is refused.
package capacity

import (
	"cmp"
	"sync"
	"time"
)

// Second is what the reads of one table consumed within one second of the machine's clock.
type Second struct {
	At      time.Time `json:"at"`
	Units   float64   `json:"units"`
	Refused int       `json:"refused"` // reads that a limit refused
}

// Limit is what the reads of a table are limited to. The zero value limits nothing.
type Limit struct {
	// Provisioned limits the table to its ReadCapacityUnits. It does nothing while the table is on
	// demand.
	Provisioned bool `json:"provisioned"`
	// Hot limits one partition, the partition of the lowest hashes, to this many units a second; 0
	// is no limit.
	Hot float64 `json:"hot"`
	// Partitions is how many equal parts of the key space there are for Hot; default 8.
	Partitions int `json:"partitions"`
	// Burst is how long unused units are kept. The service keeps them for up to five minutes; the
	// default is a second, so that a short test meets the limit. Source:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
	Burst time.Duration `json:"-"`
}

// Read is a read of one item, or of one page of a Query or Scan.
type Read struct {
	Table       string
	Provisioned int64  // the table's ReadCapacityUnits; 0 while it is on demand
	Hash        uint64 // place of the item, or of the first possible item of the page, in the key space
}

// Meter counts and limits the reads of all tables. It is safe for concurrent use; a nil Meter
// counts and limits nothing.
type Meter struct {
	mu     sync.Mutex
	tables map[string]*account
	now    func() time.Time
}

// account is the state of one table.
type account struct {
	limit   Limit
	table   bucket   // of the provisioned limit
	hot     bucket   // of the hot partition
	seconds []Second // oldest first
}

// kept is how many seconds with reads are remembered per table.
const kept = 3600

// New returns a meter on the machine's clock: clients measure their rates on it too.
func New() *Meter { return &Meter{tables: map[string]*account{}, now: time.Now} }

// account returns the state of a table. The caller holds the lock.
func (m *Meter) account(table string) *account {
	a := m.tables[table]
	if a == nil {
		a = &account{}
		m.tables[table] = a
	}
	return a
}

// Limit limits the reads of a table from now on, in place of an earlier limit. A new limit begins
// with a full burst.
func (m *Meter) Limit(table string, l Limit) {
	l.Burst, l.Partitions = cmp.Or(l.Burst, time.Second), cmp.Or(l.Partitions, 8)
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.account(table)
	a.limit, a.table, a.hot = l, bucket{}, bucket{}
}

// Calm withdraws the limits of all tables.
func (m *Meter) Calm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.tables {
		a.limit = Limit{}
	}
}

// Admit reports whether the limits let a read begin, and counts a refusal. Like the service it does
// not know yet what the read will consume: a read begins while any unit is left, and what it
// consumes beyond that delays later ones.
func (m *Meter) Admit(r Read) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a, now := m.account(r.Table), m.now()
	burst := a.limit.Burst.Seconds()
	ok := true
	if a.limit.Provisioned && r.Provisioned > 0 {
		ok = a.table.has(float64(r.Provisioned), burst, now)
	}
	if ok && a.limit.isHot(r.Hash) {
		ok = a.hot.has(a.limit.Hot, burst, now)
	}
	if !ok {
		a.second(now).Refused++
	}
	return ok
}

// Charge counts what a read has consumed.
func (m *Meter) Charge(r Read, units float64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.account(r.Table)
	a.second(m.now()).Units += units
	a.table.left -= units
	if a.limit.isHot(r.Hash) {
		a.hot.left -= units
	}
}

// isHot reports whether a place in the key space is in the hot partition.
func (l *Limit) isHot(hash uint64) bool {
	return l.Hot > 0 && hash < ^uint64(0)/uint64(l.Partitions)
}

// second returns the count of the present second.
func (a *account) second(now time.Time) *Second {
	at := now.Truncate(time.Second)
	if n := len(a.seconds); n == 0 || a.seconds[n-1].At.Before(at) {
		if n >= 2*kept {
			a.seconds = append(a.seconds[:0], a.seconds[n-kept:]...)
		}
		a.seconds = append(a.seconds, Second{At: at})
	}
	return &a.seconds[len(a.seconds)-1]
}

// Seconds returns the seconds in which a table was read, oldest first; seconds without reads are
// absent.
func (m *Meter) Seconds(table string) []Second {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.tables[table]
	if a == nil {
		return nil
	}
	return append([]Second(nil), a.seconds...)
}

// Units returns the read units that a table has consumed since a time; the second of that time
// counts in full.
func (m *Meter) Units(table string, since time.Time) float64 {
	sum := 0.0
	for _, s := range m.Seconds(table) {
		if !s.At.Before(since.Truncate(time.Second)) {
			sum += s.Units
		}
	}
	return sum
}

// bucket has the units that may still be consumed; below zero they are borrowed from the future.
type bucket struct {
	left float64
	at   time.Time // of the last refill; zero: never
}

// has refills the bucket at a rate, up to the burst in seconds, and reports whether anything is
// left.
func (b *bucket) has(rate, burst float64, now time.Time) bool {
	most := rate * burst
	if b.at.IsZero() {
		b.left = most
	} else {
		b.left = min(most, b.left+rate*now.Sub(b.at).Seconds())
	}
	b.at = now
	return b.left > 0
}
