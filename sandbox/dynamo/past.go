package dynamo

import (
	"cmp"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/request"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// LagReads is Faults.LagReads for all tables: they remember their changes from now on.
func (s *Server) LagReads(d time.Duration) {
	s.Faults.LagReads(d)
	if d == 0 {
		return
	}
	for _, t := range s.all() {
		t.Lock()
		t.KeepPast(s.o.Clock.Now())
		t.Unlock()
	}
}

// Calm withdraws the faults and limits of reads.
func (s *Server) Calm() {
	s.Faults.Calm()
	s.Reads.Calm()
}

// remember keeps a change where the table's past is needed. The caller holds the table's lock.
func (s *Server) remember(t *table.Table, key table.Key, old, now *table.Record) {
	at, lag := s.o.Clock.Now(), s.Faults.readLag()
	since, kept := t.PastSince()
	switch {
	case lag > 0 && !kept:
		t.KeepPast(at)
	case lag == 0 && kept && !t.Def.PointInTime:
		t.ForgetPast()
	case kept && !t.Def.PointInTime && at.Sub(since) > 4*lag:
		t.TrimPast(at.Add(-2 * lag))
	case kept && at.Sub(since) > recoveryPeriod+24*time.Hour:
		t.TrimPast(at.Add(-recoveryPeriod))
	}
	t.Remember(key, old, now, at)
}

// recoveryDays is how far back point-in-time recovery reaches unless UpdateContinuousBackups sets
// less, recoveryPeriod the same as a duration.
const (
	recoveryDays   = 35
	recoveryPeriod = recoveryDays * 24 * time.Hour
)

// lagging returns the items for an eventually consistent read of a table, nil when the read gets
// the present.
func (s *Server) lagging(t *table.Table) *table.Items {
	lag := s.Faults.readLag()
	if lag == 0 {
		return nil
	}
	t.Lock()
	defer t.Unlock()
	return t.AsOf(s.o.Clock.Now().Add(-lag))
}

// outcome is how a read of one item ended.
type outcome int

const (
	read    outcome = iota
	refused         // by the table's limits
	noRoom          // the item is larger than the room left in the reply
)

// read returns the record under a key, nil if there is none, as a strongly or eventually consistent
// read returns it, and counts what the read consumes. It reads nothing that is larger than room, and
// nothing that the table's limits refuse.
func (s *Server) read(t *table.Table, key table.Key, consistent bool, room int) (*table.Record, float64, outcome) {
	from := (*table.Items)(nil)
	if !consistent {
		from = s.lagging(t)
	}
	t.RLock()
	defer t.RUnlock()
	if from == nil {
		from = t.Items
	}
	rec, size := from.Get(key), 0
	if rec != nil {
		size = rec.Size
	}
	if size > room {
		return nil, 0, noRoom
	}
	cost := request.ReadOf(t, key)
	if !s.Reads.Admit(cost) {
		return nil, 0, refused
	}
	units := request.ReadUnits(size, consistent)
	s.Reads.Charge(cost, units)
	return rec, units, read
}

// earliestRestorable returns the time from which on a table's past can be restored or exported, and
// whether its past is remembered. The caller holds the table's lock.
func earliestRestorable(t *table.Table, now time.Time) (time.Time, bool) {
	since, kept := t.PastSince()
	days := cmp.Or(t.Def.RecoveryDays, recoveryDays)
	if reach := now.Add(-time.Duration(days) * 24 * time.Hour); since.Before(reach) {
		since = reach
	}
	return since, kept
}

// ShowCounts makes DescribeTable show these numbers of items and bytes for a table until
// ShowExactCounts: the service's numbers are some hours old.
func (s *Server) ShowCounts(name string, items, bytes int64) error {
	return s.setCounts(name, &table.Counts{Items: items, Bytes: bytes})
}

// ShowExactCounts makes DescribeTable show the exact numbers of items and bytes, as it does at
// first.
func (s *Server) ShowExactCounts(name string) error { return s.setCounts(name, nil) }

// setCounts sets what DescribeTable shows.
func (s *Server) setCounts(name string, c *table.Counts) error {
	t, bad := s.findAny(name)
	if bad != nil {
		return bad
	}
	t.Lock()
	defer t.Unlock()
	t.Counted = c
	return nil
}
