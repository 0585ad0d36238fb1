package pipeline

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
)

// tableView is what a table's goroutines publish about it. Any goroutine may read it.
type tableView struct {
	*env
	mu      sync.Mutex // covers replacing current
	current atomic.Pointer[snapshot]
	detail  status.Watched
	history *latency.History
	usage   usage
	looks   limit.Window // at where changes wait
	// callTook is the time of a call to Bigtable in nanoseconds, in the mean of the last seconds in
	// which there were calls; 0: none yet.
	callTook atomic.Int64
	// reported is what the histogram had counted at the last report; keepHistory's goroutine alone
	// uses it.
	reported latency.Counts
}

// observe publishes what the log holds.
func (v *tableView) observe(s *checkpoint.State, p queue.Pressure, letters *apply.DeadLetters) {
	o := status.Observe(status.Seen{
		Instance: v.instance(),
		Source:   v.Source, Target: v.Target, State: s, Pressure: p, Letters: letters.Count(), LettersSince: letters.Since(),
		LetterCodes: letters.Codes(), Now: v.now(),
		ClaimTTL: v.o.Periods.ClaimTTL, Retry: v.o.Periods.Retry, Late: v.late(),
		Pending: v.pending,
	}, v.latest().seen)
	o.SetOwn(!s.Released)
	v.publish(func(now *snapshot) { now.seen, now.changes = o, s.Changes })
	v.detail.Observe(s, v.now())
}

// late returns how far behind the table may be before it counts as late.
func (v *tableView) late() time.Duration { return cmp.Or(v.Late, v.o.Periods.Late) }

// tableGone publishes how often in a row DynamoDB has answered that it has no such table; 0: it has
// the table. Each life counts anew, and what the lives before it have found stays.
func (v *tableView) tableGone(times int) {
	if was := v.latest().denied; times > was || times == 0 && was > 0 {
		v.publish(func(s *snapshot) { s.denied = times })
	}
}

// halt publishes why the table stands still until the next try.
func (v *tableView) halt(h *checkpoint.Halt) {
	v.publish(func(s *snapshot) {
		if outcome.LogHalt(v.log, s.halt, h, v.o.Periods.Retry) {
			s.haltedAt = h.At
		}
		s.halt = h
	})
}

// beating notes that the table works: what halted it is over, unless that followed from the row and
// the row is not known.
func (v *tableView) beating(rowKnown bool) {
	if h := v.latest().halt; h != nil && (rowKnown || !outcome.ByRow(h.Code)) {
		v.endHalt()
	}
}

// endHalt publishes that what halted the table is over.
func (v *tableView) endHalt() { v.publish(func(s *snapshot) { s.halt = nil }) }

// observeStored publishes what the log holds of a table that cannot begin.
func (v *tableView) observeStored(s *checkpoint.State) {
	o := status.Observe(status.Seen{
		Instance: v.instance(),
		Source:   v.Source, Target: v.Target, State: s, Now: v.now(), ClaimTTL: v.o.Periods.ClaimTTL,
		Retry: v.o.Periods.Retry, Late: v.late(),
	}, v.latest().stored)
	v.publish(func(now *snapshot) { now.stored = o })
}

// pending returns how many of the changes in the log Bigtable has not got; false while that is
// unknown.
func (v *tableView) pending(changes uint64) (n uint64, known bool) {
	sink := v.latest().parts.sink
	if sink == nil {
		return 0, false
	}
	return sink.Pending(changes)
}

// remember samples the table for its history.
func (v *tableView) remember(now time.Time) {
	st, pending, lag := v.status(now), math.NaN(), math.NaN()
	if st.Pending != nil {
		pending = float64(*st.Pending)
	}
	if st.AppliedLag >= 0 {
		lag = st.AppliedLag
	}
	v.history.Sample(now, pending, lag)
	v.noteUsage(now, &st)
}

// status returns how the table is now, as far as this process has found, with its noted reasons.
func (v *tableView) status(now time.Time) TableStatus {
	s := v.latest()
	st := v.seenStatus(s, now)
	st.Add(premiseReasons(s.unnamed(&st))...)
	if s.note != nil {
		st.Put(*s.note)
	} else if s.denied > 1 { // Rule 13: one such answer is shown by nothing
		st.Vanish()
	}
	return st
}

func (v *tableView) seenStatus(s *snapshot, now time.Time) TableStatus {
	if s.rival != nil && s.halt == nil {
		return v.standBy(s.rival, now)
	}
	known, seen := v.knownNow(s, now), s.seen
	if seen == nil && s.halt != nil {
		seen = s.stored
	}
	if seen != nil {
		return seen.With(known).At(v.now().Time(), now)
	}
	// Nothing is known since that time, so nothing is younger than that.
	st := status.Unseen(v.Source, v.Target, s.unseen).With(known).At(v.now().Time(), now)
	if s.halt == nil {
		st.SourceLag, st.AppliedLag = now.Sub(s.unseen).Seconds(), now.Sub(s.unseen).Seconds()
		st.Explain(status.Reason{Code: status.WhyNotStarted,
			Text: "not started yet; nothing is known of it for " + status.Ago(now.Sub(s.unseen))})
	} else {
		st.Explain(status.HaltedBy(s.halt.Reason))
	}
	return st
}

// knownNow returns what the parts of the table show beside what the log holds.
func (v *tableView) knownNow(s *snapshot, now time.Time) status.Now {
	known := status.Now{Halt: s.halt, HaltedAt: s.haltedAt, Requests: s.parts.requests.Status()}
	if c := s.parts.copier; c != nil {
		known.Copy = c.Progress()
	}
	if w := s.parts.whole; w != nil {
		known.Resync = w.Status()
	}
	if c := s.parts.verifier; c != nil {
		known.Verify = c.Status()
	}
	if a := s.parts.archiver; a != nil {
		st := a.Status()
		known.Archive = &st
	}
	if since, ok := v.source.ThrottledSince(v.Source); ok {
		known.Throttled = &since
	}
	if v.Target != "" {
		recent := v.history.Recent(now)
		known.Recent = &recent
	}
	known.Cost = v.usage.cost(v.used(s, now))
	if facts, ok := v.looks.Facts(); ok {
		known.Limit, known.Way = &facts, v.way(s)
	}
	return known
}

// standBy returns the status of a table that another process carries. That one reports it; here it
// is ready as long as the log moves.
func (v *tableView) standBy(r *rival, now time.Time) TableStatus {
	st := TableStatus{
		Source: v.Source, Target: v.Target, State: status.StandBy, SourceLag: -1, AppliedLag: -1, Retention: -1,
		Proof: status.Assumed, Owner: r.owner, Epoch: r.epoch, Queue: status.Queue{HoursLeft: -1},
	}
	if still := now.Sub(r.moved); still > protocol.SilentAfter(v.o.Periods.ClaimTTL) {
		st.Explain(status.Reason{Code: status.WhyNoOwner, Text: fmt.Sprintf(
			"standing by, but the owner %s has shown no sign of life for %s", r.owner, status.Ago(still))})
	}
	return st
}

// retentionLeft returns the time until unread records may be lost; false while it is unknown.
func (v *tableView) retentionLeft() (time.Duration, bool) {
	left := v.status(time.Now()).Retention
	return time.Duration(left * float64(time.Second)), left >= 0
}

// premiseReasons returns why a table is not ready because of settings that are not as they must be.
func premiseReasons(broken protocol.Premises) (reasons []status.Reason) {
	for i := range broken {
		reasons = append(reasons, status.Reason{Code: status.WhyPremise, Text: broken[i].Text()})
	}
	return reasons
}
