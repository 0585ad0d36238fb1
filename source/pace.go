package source

import (
	"cmp"
	"math/rand/v2"
	"time"
)

const (
	activePoll = 200 * time.Millisecond // least delay between two reads of a shard that has records
	slowest    = 0.2                    // reads a second of a throttled shard, at least
	firstRetry = 100 * time.Millisecond // backoff after one failure
	lastRetry  = 10 * time.Second       // and after many

	// activeTime is how long a shard counts as active after a record: its delay is not lengthened.
	// The records of a table with 200 changes a second come seconds apart in each of its shards,
	// and with a second instead of ten the slowest hundredth of them waits for the idle poll. With
	// a minute, a shard with one record a minute would be polled as often as the busiest.
	activeTime = 10 * time.Second
)

// UseIdlePoll sets how often idle shards of a table are read, before anything of it is read: see
// Options.IdlePolls.
func (s *Source) UseIdlePoll(table string, every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idlePolls[table] = every
}

func (s *Source) idlePoll(table string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.idlePolls[table], s.opt.IdlePoll)
}

// IdleReads returns how often a second a shard is read that gets no records but a heartbeat every
// so often, 0 being none: each heartbeat makes it active.
func IdleReads(idlePoll, heartbeat time.Duration) float64 {
	active := 0.0
	if heartbeat > 0 {
		active = min(1, activeTime.Seconds()/heartbeat.Seconds())
	}
	return active/min(activePoll, idlePoll).Seconds() + (1-active)/idlePoll.Seconds()
}

// Pace decides when a shard may be read next.
//
// Every shard has its own rate, so a throttled shard slows down alone: each throttled call halves
// the rate, each read increases it by a step. Idle shards are polled less and less often, down to
// the idle poll, but only ten seconds after a record: most pages of a shard with a record a second
// are empty.
//
// A Pace has a backoff of its own instead of cenkalti/backoff's, which keeps its state in one
// call's loop: here no goroutine waits, the due times of thousands of shards are in a heap, and a
// read may be delayed by rate, idleness and failures at once.
type Pace struct {
	Rate   float32       // reads a second, now
	idle   time.Duration // last delay; 0 after a full page
	Due    time.Time
	began  time.Time // the last read
	Fails  uint16    // in a row
	record time.Time // when the last page with records came
}

// ReadStarted notes that a read starts now.
func (p *Pace) ReadStarted(now time.Time) {
	p.began = now
	p.Due = now.Add(p.least())
}

// least returns the time between two reads at the present rate.
func (p *Pace) least() time.Duration { return time.Duration(float64(time.Second) / float64(p.Rate)) }

// ReadSoon makes a shard due as soon as its rate allows, whether it is idle or not. One that could
// not be read waits for its retry.
func (p *Pace) ReadSoon(now time.Time) {
	soon := p.began.Add(p.least())
	if now.After(soon) {
		soon = now
	}
	if p.Fails == 0 && soon.Before(p.Due) {
		p.Due = soon
	}
}

// ReadSucceeded notes how much a read returned. A closed shard gets no new records, so it is read
// on without delay.
func (p *Pace) ReadSucceeded(now time.Time, limit float64, kind pageKind, closed bool, idlePoll time.Duration) {
	p.Fails = 0
	p.Rate = min(p.Rate+0.1, float32(limit))
	if kind != pageEmpty {
		p.record = now
	}
	switch {
	case kind == pageFull || closed:
		p.idle = 0
	case kind == pagePart || p.idle == 0:
		p.idle = min(activePoll, idlePoll)
	case now.Sub(p.record) < activeTime:
	default:
		p.idle = min(2*p.idle, idlePoll)
	}
	switch {
	case p.idle > activePoll:
		p.notBefore(now, jitter(p.idle*39/40, 0.025))
		p.align(p.idle / 20)
	case p.idle > 0:
		p.notBefore(now, jitter(p.idle*19/20, 0.05))
	}
}

// align makes the shard due at a multiple of d, up to d earlier. So idle shards are due together,
// because waking up for each of them costs as much as the call itself.
func (p *Pace) align(d time.Duration) {
	p.Due = p.Due.Add(-time.Duration(p.Due.UnixNano() % int64(d)))
}

// ReadFailed notes that a read failed and will be tried again.
func (p *Pace) ReadFailed(now time.Time, throttled bool) {
	p.Fails = min(p.Fails+1, 1000)
	if throttled {
		p.Rate = max(p.Rate/2, slowest)
		p.notBefore(now, time.Duration(float64(time.Second)/float64(p.Rate)))
	}
	p.notBefore(now, retryBackoff(int(p.Fails)))
}

// notBefore delays the due time to d from now, unless it is later already.
func (p *Pace) notBefore(now time.Time, d time.Duration) {
	if t := now.Add(d); t.After(p.Due) {
		p.Due = t
	}
}

// retryBackoff returns the delay after the n-th failure in a row: 100 ms, doubling up to 10 s, ± 20
// %.
func retryBackoff(n int) time.Duration {
	return jitter(min(firstRetry<<min(max(n-1, 0), 10), lastRetry), 0.2)
}

// jitter spreads d by ± share of it.
func jitter(d time.Duration, share float64) time.Duration {
	return time.Duration(float64(d) * (1 + share*(2*rand.Float64()-1)))
}

// pageKind is how much a read returned.
type pageKind uint8

const (
	pageEmpty pageKind = iota
	pagePart
	pageFull // there is more at once
)
