package stream

import (
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
)

// Trouble is what an engine does wrong on purpose. All of it is off at first; every
// method may be called at any time. Durations run on the sandbox's clock, rates of calls
// on the machine's.
type Trouble struct {
	clock *clock.Clock

	mu          sync.Mutex
	hideFor     time.Duration        // children stay unlisted this long after their birth
	openFor     time.Duration        // a closed parent is listed as open this long
	openUntil   map[string]time.Time // parents that are listed as open
	dropped     map[string]bool      // shards left out of listings
	dropParents bool                 // every closed shard that has a child is left out
	listPage    int                  // shards per DescribeStream page at most; 0 = 100
	empty       int                  // empty pages still to come
	emptyShard  map[string]int       // the same, per shard
	slack       time.Duration        // LATEST starts this far in the past
	iteratorTTL time.Duration        // 0 = 15 minutes
	readers     int                  // readers per shard; 0 = any number
	seen        map[string]map[uint64]time.Time
	throttles   map[string]*throttle // per shard
	skew        time.Duration        // of creation times
	lateEnd     bool                 // the last page of a closed shard is an empty one
	times       TimeFormat
}

// TimeFormat is how records spell their creation time: all three have been seen.
type TimeFormat byte

// The formats of RecordTimes.
const (
	Seconds  TimeFormat = iota // 1795257720
	Fraction                   // 1795257720.000
	Exponent                   // 1.79525772E9
)

type throttle struct {
	code string
	left int     // refusals still to come; < 0 = no count
	rate float64 // calls a second that are let through; 0 = none
	next time.Time
}

func newTrouble(c *clock.Clock) *Trouble {
	return &Trouble{
		clock: c, openUntil: map[string]time.Time{}, dropped: map[string]bool{}, emptyShard: map[string]int{},
		seen: map[string]map[uint64]time.Time{}, throttles: map[string]*throttle{},
	}
}

// HideChildren keeps every shard that has a parent out of listings until it is d old.
func (t *Trouble) HideChildren(d time.Duration) { t.set(func() { t.hideFor = d }) }

// OpenParents lists a shard that is split from now on as still open for another d,
// beside its children.
func (t *Trouble) OpenParents(d time.Duration) { t.set(func() { t.openFor = d }) }

// DropShard leaves a shard out of listings, while it can still be read; drop = false
// undoes it.
func (t *Trouble) DropShard(shard string, drop bool) {
	t.set(func() {
		if drop {
			t.dropped[shard] = true
		} else {
			delete(t.dropped, shard)
		}
	})
}

// DropParents leaves every closed shard that has a child out of listings.
func (t *Trouble) DropParents(drop bool) { t.set(func() { t.dropParents = drop }) }

// ListPage makes DescribeStream return at most n shards a page; 0 is the service's 100.
func (t *Trouble) ListPage(n int) { t.set(func() { t.listPage = n }) }

// EmptyPages makes the next n GetRecords of a shard return nothing and no progress. An
// empty shard id means the next n calls of any shard.
func (t *Trouble) EmptyPages(shard string, n int) {
	t.set(func() {
		if shard == "" {
			t.empty = n
		} else {
			t.emptyShard[shard] = n
		}
	})
}

// LateEnd makes closed shards end with an empty page, instead of saying so on the page
// with the last records.
func (t *Trouble) LateEnd(late bool) { t.set(func() { t.lateEnd = late }) }

// LatestSlack makes LATEST iterators start with records up to d old.
func (t *Trouble) LatestSlack(d time.Duration) { t.set(func() { t.slack = d }) }

// IteratorTTL is how long an iterator is good; 0 is the service's 15 minutes.
func (t *Trouble) IteratorTTL(d time.Duration) { t.set(func() { t.iteratorTTL = d }) }

// ReadersPerShard refuses GetRecords with LimitExceededException when more than n
// chains of iterators were used on a shard within a second; 0 is no limit.
func (t *Trouble) ReadersPerShard(n int) { t.set(func() { t.readers = n }) }

// RecordSkew shifts the creation time of records committed from now on.
func (t *Trouble) RecordSkew(d time.Duration) { t.set(func() { t.skew = d }) }

// RecordTimes sets how records committed from now on spell their creation time.
func (t *Trouble) RecordTimes(f TimeFormat) { t.set(func() { t.times = f }) }

// ThrottleShard refuses GetRecords on a shard with an error code: the next times calls
// if times > 0, else all beyond perSecond calls a second. times = 0 and perSecond < 0
// ends it.
func (t *Trouble) ThrottleShard(shard, code string, times int, perSecond float64) {
	t.set(func() {
		delete(t.throttles, shard)
		switch {
		case times > 0:
			t.throttles[shard] = &throttle{code: code, left: times}
		case perSecond >= 0:
			t.throttles[shard] = &throttle{code: code, left: -1, rate: perSecond}
		}
	})
}

// Calm ends all of it.
func (t *Trouble) Calm() {
	t.set(func() {
		fresh := newTrouble(t.clock)
		t.hideFor, t.openFor, t.openUntil, t.dropped, t.dropParents = 0, 0, fresh.openUntil, fresh.dropped, false
		t.listPage, t.empty, t.emptyShard, t.slack, t.iteratorTTL = 0, 0, fresh.emptyShard, 0, 0
		t.readers, t.seen, t.throttles, t.skew, t.lateEnd, t.times = 0, fresh.seen, fresh.throttles, 0, false, Seconds
	})
}

func (t *Trouble) set(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

func (t *Trouble) recordTime() (skew time.Duration, format TimeFormat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.skew, t.times
}

// parentClosed notes that a shard was split.
func (t *Trouble) parentClosed(shard string) {
	t.set(func() {
		if t.openFor > 0 {
			t.openUntil[shard] = t.clock.Now().Add(t.openFor)
		}
	})
}

// view is what a listing shows of a shard.
func (t *Trouble) view(sh *shard, hasChild bool, now time.Time) (listed, open bool) {
	if t.dropped[sh.id] || t.dropParents && hasChild {
		return false, false
	}
	if t.hideFor > 0 && sh.parent != "" && now.Before(sh.created.Add(t.hideFor)) {
		return false, false
	}
	return true, !sh.closed || now.Before(t.openUntil[sh.id])
}

// takeEmpty reports whether this call of a shard has to return an empty page.
func (t *Trouble) takeEmpty(shard string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.empty > 0 {
		t.empty--
		return true
	}
	if t.emptyShard[shard] > 0 {
		t.emptyShard[shard]--
		return true
	}
	return false
}

// refuse returns the error code that a GetRecords call gets, or "".
func (t *Trouble) refuse(shard string, reader uint64) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if code := t.throttles[shard].refuse(now); code != "" {
		return code
	}
	if t.readers == 0 {
		return ""
	}
	chains := t.seen[shard]
	if chains == nil {
		chains = map[uint64]time.Time{}
		t.seen[shard] = chains
	}
	for id, at := range chains {
		if now.Sub(at) > time.Second {
			delete(chains, id)
		}
	}
	if _, known := chains[reader]; !known && len(chains) >= t.readers {
		return "LimitExceededException"
	}
	chains[reader] = now
	return ""
}

func (th *throttle) refuse(now time.Time) string {
	switch {
	case th == nil || th.left == 0:
		return ""
	case th.left > 0:
		th.left--
		return th.code
	case th.rate > 0 && !now.Before(th.next):
		th.next = now.Add(time.Duration(float64(time.Second) / th.rate))
		return ""
	}
	return th.code
}
