package pipeline

import (
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// Samples of what a table uses: one a minute, of the last hour. So a rate is the mean of at
// most an hour, and a change of the configuration is visible within one.
const (
	usageEvery = time.Minute
	usageKept  = int(time.Hour/usageEvery) + 1
)

// usage remembers what a table used of the clouds while this process carries it. Any goroutine may
// call its methods.
type usage struct {
	mu      sync.Mutex    // covers samples
	samples []usageSample // in the order of time, at most usageKept
}

type usageSample struct {
	at      time.Time
	counts  status.CostCounts
	passing bool // a copy or a resync ran
}

// note remembers a sample, unless one is less than usageEvery old. A copy that ran in between is
// noted at once.
func (u *usage) note(s usageSample) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := len(u.samples); n > 0 && s.at.Sub(u.samples[n-1].at) < usageEvery {
		u.samples[n-1].passing = u.samples[n-1].passing || s.passing
		return
	}
	if len(u.samples) == usageKept {
		u.samples = append(u.samples[:0], u.samples[1:]...)
	}
	u.samples = append(u.samples, s)
}

// clear forgets the samples: another process carries the table, and what it uses is not counted
// here.
func (u *usage) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.samples = u.samples[:0]
}

// cost returns what the table costs by what it has used since the oldest sample; nil where that is
// not known.
func (u *usage) cost(now usageSample) *status.Cost {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.samples) == 0 {
		return nil
	}
	c := status.CostBetween(u.samples[0].counts, now.counts, now.at.Sub(u.samples[0].at).Seconds())
	if c == nil {
		return nil
	}
	c.Passing = now.passing
	for i := range u.samples {
		c.Passing = c.Passing || u.samples[i].passing
	}
	return c
}

// used returns what the table has used so far; s has its parts.
func (v *tableView) used(s *snapshot, now time.Time) usageSample {
	reads := v.source.Reads(v.Source)
	x := usageSample{
		at: now, passing: s.parts.copier != nil || s.parts.whole != nil && s.parts.whole.Status() != nil,
		counts: status.CostCounts{StreamReads: reads.Charged, ReadUnits: reads.Units},
	}
	if v.Target != "" && v.bigtable != nil {
		u := v.bigtable.Usage(v.Target)
		x.counts.Writes, x.counts.RowsRead = u.Writes, u.RowsRead
	}
	return x
}

// noteUsage remembers what the table has used, if this process carries it.
func (v *tableView) noteUsage(now time.Time, st *TableStatus) {
	if st.State == status.StandBy {
		v.usage.clear()
		return
	}
	v.usage.note(v.used(v.latest(), now))
}
