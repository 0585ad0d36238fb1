package stream

import (
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
)

// Faults injects faults into an engine: listings that lack or misstate shards, empty pages, refused
// calls, expired iterators, skewed record times. All faults are off at first. Every method may be
// called at any time. Durations are measured on the sandbox's clock, call rates on the machine's.
type Faults struct {
	clock *clock.Clock

	mu          sync.Mutex                      // guards all that follows
	hideFor     time.Duration                   // age at which a child shard is first listed
	openFor     time.Duration                   // how long a split parent is still listed as open
	openUntil   map[string]time.Time            // shard id → until when it is listed as open although it is closed
	dropped     map[string]bool                 // shards left out of listings
	dropParents bool                            // leave out every closed shard that has a child
	listPage    int                             // most shards per DescribeStream page; 0: the service's 100
	empty       int                             // empty pages still to serve, whatever the shard
	emptyShard  map[string]int                  // empty pages still to serve, by shard id
	falseEnds   map[string]int                  // false ends still to serve, by shard id; "": of any; < 0: until calm
	falseEnded  int                             // that were served
	slack       time.Duration                   // how far in the past a LATEST iterator starts
	iteratorTTL time.Duration                   // 0: the service's 15 minutes
	readers     int                             // most readers of one shard; 0: no limit
	seen        map[string]map[uint64]time.Time // shard id → iterator chain → its last call
	throttles   map[string]*throttle            // by shard id
	skew        time.Duration                   // added to creation times
	jitter      time.Duration                   // most that is added to or taken from each creation time
	cut         time.Duration                   // creation times are cut to multiples of this
	lateEnd     bool                            // a closed shard ends with an empty page
	times       TimeFormat
}

// TimeFormat is the JSON spelling of a record's creation time. The service and its clients use all
// three.
type TimeFormat byte

// The formats of RecordTimes.
const (
	Seconds  TimeFormat = iota // 1795257720
	Fraction                   // 1795257720.000
	Exponent                   // 1.79525772E9
)

// throttle refuses GetRecords on one shard, either a number of times or beyond a rate.
type throttle struct {
	code string    // of the refusal
	left int       // refusals still to come; < 0: limited by rate alone
	rate float64   // calls per second that pass; 0: none
	next time.Time // when the next call passes
}

func newFaults(c *clock.Clock) *Faults {
	return &Faults{
		clock: c, openUntil: map[string]time.Time{}, dropped: map[string]bool{}, emptyShard: map[string]int{},
		falseEnds: map[string]int{},
		seen:      map[string]map[uint64]time.Time{}, throttles: map[string]*throttle{},
	}
}

// HideChildren leaves every shard that has a parent out of listings until the shard is d old.
func (x *Faults) HideChildren(d time.Duration) { x.set(func() { x.hideFor = d }) }

// OpenParents lists every shard that is split from now on as open for another d, beside its
// children.
func (x *Faults) OpenParents(d time.Duration) { x.set(func() { x.openFor = d }) }

// DropShard leaves a shard out of listings; it can still be read. drop = false lists it again.
func (x *Faults) DropShard(shard string, drop bool) {
	x.set(func() {
		if drop {
			x.dropped[shard] = true
		} else {
			delete(x.dropped, shard)
		}
	})
}

// DropParents leaves every closed shard that has a child out of listings.
func (x *Faults) DropParents(drop bool) { x.set(func() { x.dropParents = drop }) }

// ListPage makes DescribeStream return at most n shards a page; 0 is the service's 100.
func (x *Faults) ListPage(n int) { x.set(func() { x.listPage = n }) }

// EmptyPages makes the next n GetRecords of a shard return no records and an iterator at the same
// position. An empty shard id applies to the next n calls of any shard.
func (x *Faults) EmptyPages(shard string, n int) {
	x.set(func() {
		if shard == "" {
			x.empty = n
		} else {
			x.emptyShard[shard] = n
		}
	})
}

// FalseEnds makes the next n GetRecords of a shard return neither records nor an iterator, as the
// last page of a closed shard may, although it goes on. A negative n applies to all until n is 0;
// an empty shard id applies to any shard.
func (x *Faults) FalseEnds(shard string, n int) { x.set(func() { x.falseEnds[shard] = n }) }

// FalseEnded returns how many false ends were served.
func (x *Faults) FalseEnded() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.falseEnded
}

// takeFalseEnd reports whether this GetRecords on a shard must return a false end, and counts it.
func (x *Faults) takeFalseEnd(shard string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, of := range []string{shard, ""} {
		if n := x.falseEnds[of]; n != 0 {
			x.falseEnds[of] = max(n-1, -1)
			x.falseEnded++
			return true
		}
	}
	return false
}

// LateEnd makes a closed shard end with an empty page. Otherwise the page with its last records has
// no NextShardIterator.
func (x *Faults) LateEnd(late bool) { x.set(func() { x.lateEnd = late }) }

// LatestSlack makes LATEST iterators start with records up to d old.
func (x *Faults) LatestSlack(d time.Duration) { x.set(func() { x.slack = d }) }

// IteratorTTL sets how long an iterator is valid; 0 is the service's 15 minutes.
func (x *Faults) IteratorTTL(d time.Duration) { x.set(func() { x.iteratorTTL = d }) }

// ReadersPerShard refuses GetRecords with LimitExceededException when more than n iterator chains
// were used on a shard within a second; 0 is no limit.
func (x *Faults) ReadersPerShard(n int) { x.set(func() { x.readers = n }) }

// RecordSkew shifts the creation time of records committed from now on.
func (x *Faults) RecordSkew(d time.Duration) { x.set(func() { x.skew = d }) }

// RecordJitter shifts the creation time of each record committed from now on by a time of its own,
// by up to d in either direction, repeatable with the engine's seed.
func (x *Faults) RecordJitter(d time.Duration) { x.set(func() { x.jitter = d }) }

// RecordCut cuts the creation times of records committed from now on to multiples of d, such as
// whole minutes; 0 ends it.
func (x *Faults) RecordCut(d time.Duration) { x.set(func() { x.cut = d }) }

// RecordTimes sets how records committed from now on spell their creation time.
func (x *Faults) RecordTimes(f TimeFormat) { x.set(func() { x.times = f }) }

// ThrottleShard refuses GetRecords on a shard with an error code: the next times calls if times >
// 0, otherwise all calls beyond perSecond a second. times = 0 and perSecond < 0 removes the
// throttle.
func (x *Faults) ThrottleShard(shard, code string, times int, perSecond float64) {
	x.set(func() {
		delete(x.throttles, shard)
		switch {
		case times > 0:
			x.throttles[shard] = &throttle{code: code, left: times}
		case perSecond >= 0:
			x.throttles[shard] = &throttle{code: code, left: -1, rate: perSecond}
		}
	})
}

// Calm removes all faults. What they did to records already committed stays.
func (x *Faults) Calm() {
	x.set(func() {
		fresh := newFaults(x.clock)
		x.hideFor, x.openFor, x.openUntil, x.dropped, x.dropParents = 0, 0, fresh.openUntil, fresh.dropped, false
		x.listPage, x.empty, x.emptyShard, x.slack, x.iteratorTTL = 0, 0, fresh.emptyShard, 0, 0
		x.readers, x.seen, x.throttles, x.skew, x.lateEnd, x.times = 0, fresh.seen, fresh.throttles, 0, false, Seconds
		x.jitter, x.cut, x.falseEnds = 0, 0, fresh.falseEnds
	})
}

// set changes faults under the lock.
func (x *Faults) set(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
}

// recordTime returns the creation time of a record that is committed now, and its spelling. draw is
// a random number of the record.
func (x *Faults) recordTime(now time.Time, draw uint64) (time.Time, TimeFormat) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now = now.Add(x.skew)
	if x.jitter > 0 {
		now = now.Add(time.Duration(draw%uint64(2*x.jitter+1)) - x.jitter)
	}
	if x.cut > 0 {
		now = now.Truncate(x.cut)
	}
	return now, x.times
}

// latestSlack returns how old the first record of a LATEST iterator may be.
func (x *Faults) latestSlack() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.slack
}

// iteratorLife returns how long an iterator is valid, and whether a closed shard ends with an empty
// page.
func (x *Faults) iteratorLife() (life time.Duration, lateEnd bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.iteratorTTL > 0 {
		return x.iteratorTTL, x.lateEnd
	}
	return 15 * time.Minute, x.lateEnd
}

// parentClosed records that a shard was split, for OpenParents.
func (x *Faults) parentClosed(shard string) {
	x.set(func() {
		if x.openFor > 0 {
			x.openUntil[shard] = x.clock.Now().Add(x.openFor)
		}
	})
}

// listedAs returns whether a listing includes a shard, and whether it shows the shard as open. The
// caller holds x.mu.
func (x *Faults) listedAs(sh *shard, hasChild bool, now time.Time) (listed, open bool) {
	if x.dropped[sh.id] || x.dropParents && hasChild {
		return false, false
	}
	if x.hideFor > 0 && sh.parent != "" && now.Before(sh.created.Add(x.hideFor)) {
		return false, false
	}
	return true, !sh.closed || now.Before(x.openUntil[sh.id])
}

// takeEmpty reports whether this GetRecords on a shard must return an empty page, and counts it.
func (x *Faults) takeEmpty(shard string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.empty > 0 {
		x.empty--
		return true
	}
	if x.emptyShard[shard] > 0 {
		x.emptyShard[shard]--
		return true
	}
	return false
}

// refuse returns the error code for this GetRecords on a shard, or "" when the call passes. reader
// identifies the chain of iterators that began with one GetShardIterator.
func (x *Faults) refuse(shard string, reader uint64) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	if code := x.throttles[shard].refuse(now); code != "" {
		return code
	}
	if x.readers == 0 {
		return ""
	}
	chains := x.seen[shard]
	if chains == nil {
		chains = map[uint64]time.Time{}
		x.seen[shard] = chains
	}
	for id, at := range chains {
		if now.Sub(at) > time.Second {
			delete(chains, id)
		}
	}
	if _, known := chains[reader]; !known && len(chains) >= x.readers {
		return "LimitExceededException"
	}
	chains[reader] = now
	return ""
}

// refuse returns the error code for a call at this time, "" when it passes, and counts it. A nil
// throttle passes all.
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
