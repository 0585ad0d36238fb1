package source

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Retention is how long DynamoDB Streams keeps a record at least.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
const Retention = 24 * time.Hour

// An idle shard is taken to have nothing unread after that many empty pages over that time: DynamoDB may
// return an empty page although more follows.
const (
	idlePages = 10
	idleTime  = time.Minute
)

// watch knows the readers that are alive, by table: the retention fuse.
type watch struct {
	mu      sync.Mutex
	readers map[string]map[*Reader]struct{}
}

func (w *watch) add(r *Reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readers == nil {
		w.readers = map[string]map[*Reader]struct{}{}
	}
	if w.readers[r.start.Table] == nil {
		w.readers[r.start.Table] = map[*Reader]struct{}{}
	}
	w.readers[r.start.Table][r] = struct{}{}
}

func (w *watch) remove(r *Reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.readers[r.start.Table], r)
}

// Retention returns how long it takes until the oldest record that a live reader of the table has not read
// may be lost: 24 h less its age, never below zero. Records behind it in waiting shards are younger. It is
// false while no reader of the table knows anything.
func (s *Source) Retention(table string) (left time.Duration, ok bool) {
	now := s.nowOr()
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return s.retention(table, now)
}

func (s *Source) retention(table string, now int64) (left time.Duration, ok bool) {
	left = Retention
	for r := range s.watch.readers[table] {
		if through := r.readThrough(); through > 0 {
			ok = true
			age := time.Duration(max(now-through, 0)) * time.Millisecond
			left = min(left, max(Retention-age, 0))
		}
	}
	return left, ok
}

// readThrough returns a time in unix ms before which everything of the shard is read, or 0. What a reader
// was told at its start counts only after a minute without a better answer: an idle shard's last record may
// be of last week.
func (r *Reader) readThrough() int64 {
	if t := r.through.Load(); t > 0 {
		return t
	}
	if time.Since(r.born) < idleTime {
		return 0
	}
	if r.start.Clock > 0 {
		return r.start.Clock
	}
	return shardCreated(r.start.Feed.Shard)
}

// read notes how far a page took the shard.
func (r *Reader) readTo(p *Page) {
	if n := len(p.Records); n > 0 {
		r.through.Store(max(r.through.Load(), p.Records[n-1].Created))
		r.empties = 0
		return
	}
	if r.empties == 0 {
		r.emptySince = time.Now()
	}
	r.empties++
	if r.empties >= idlePages && time.Since(r.emptySince) >= idleTime {
		r.through.Store(max(r.through.Load(), p.Date))
	}
}

// parkCollector reports at scrape time how long readers wait.
type parkCollector struct{ s *Source }

var oldestParkDesc = prometheus.NewDesc("tailrace_source_parked_oldest_seconds",
	"How long the reader that waits longest for memory has waited.", nil, nil)

func (c parkCollector) Describe(ch chan<- *prometheus.Desc) { ch <- oldestParkDesc }

func (c parkCollector) Collect(ch chan<- prometheus.Metric) {
	var oldest float64
	if n, since := c.s.budget.Parked(); n > 0 {
		oldest = time.Since(since).Seconds()
	}
	ch <- prometheus.MustNewConstMetric(oldestParkDesc, prometheus.GaugeValue, oldest)
}
