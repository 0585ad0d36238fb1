package pipeline

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue"
)

// tableView is what a table's goroutines publish about it. Any goroutine may read it.
type tableView struct {
	*env
	processStart time.Time // of the process

	owning  atomic.Bool // the loops of a life run
	claimed atomic.Bool // this process has claimed the log
	saved   atomic.Bool // and released it with the newest marks in it
	unsaved atomic.Bool // the table ended as owner of a log that was not released with them
	started atomic.Bool // the state is loaded, owning or standing by
	halted  atomic.Pointer[checkpoint.Halt]
	seen    atomic.Pointer[observed] // what the owner saw last; nil before the first claim, and while there is a rival
	rival   atomic.Pointer[rival]    // who else owns the log, while this process waits for it
}

// rival is another process that owns the table's log.
type rival struct {
	owner string
	epoch uint64
	moved time.Time // when the log was last seen to grow
}

// observe publishes what the log holds.
func (v *tableView) observe(s *checkpoint.State, p queue.Pressure, letters int) {
	o := observe(Seen{
		Source: v.Source, Target: v.Target, State: s, Pressure: p, Letters: letters,
		Now: v.now(), ClaimTTL: v.o.Periods.ClaimTTL, Retry: v.o.Periods.Retry, Late: v.o.Periods.Late,
	}, v.seen.Load())
	o.own = !s.Released
	v.seen.Store(o)
}

// status returns how the table is now, as far as this process knows.
func (v *tableView) status(now time.Time) TableStatus {
	o := observed{
		status: TableStatus{Source: v.Source, Target: v.Target, State: "waiting", Proof: "assumed"}, lookedAt: v.processStart,
	}
	seen := v.seen.Load()
	if seen != nil {
		o = *seen
	}
	halt, rival := v.halted.Load(), v.rival.Load()
	if halt != nil {
		o.status.State, o.status.Halt, o.status.Code = "halted", halt.Reason, halt.Code
		o.status.addHalt(halt.Sink, halt.Reason)
		o.ownerSeen, o.retried, o.released = max(o.ownerSeen, halt.At), true, true
	}
	if rival != nil && halt == nil {
		return v.standBy(rival, now)
	}
	st := o.at(v.now().Time(), now)
	if seen == nil { // nothing is known since the start of the process, so nothing is younger than that
		st.SourceLag, st.AppliedLag = now.Sub(v.processStart).Seconds(), now.Sub(v.processStart).Seconds()
		if halt == nil {
			st.Reasons = []string{"not started yet, for " + ago(now.Sub(v.processStart))}
		} else {
			st.Reasons = []string{"halted: " + halt.Reason}
		}
	}
	return st
}

// standBy returns the status of a table that another process carries. That one reports it; here it is ready as long as
// the log moves.
func (v *tableView) standBy(r *rival, now time.Time) TableStatus {
	st := TableStatus{
		Source: v.Source, Target: v.Target, State: StandBy, SourceLag: -1, AppliedLag: -1, Retention: -1,
		Proof: "assumed", Owner: r.owner, Epoch: r.epoch, Queue: QueueUse{HoursLeft: -1},
	}
	if still := now.Sub(r.moved); still > 3*v.o.Periods.ClaimTTL {
		st.Reasons = []string{
			fmt.Sprintf("standing by, but the owner %s has shown no sign of life for %s", r.owner, ago(still)),
		}
	}
	return st
}

// retentionLeft returns the time until unread records may be lost; false while it is unknown.
func (v *tableView) retentionLeft() (time.Duration, bool) {
	left := v.status(time.Now()).Retention
	return time.Duration(left * float64(time.Second)), left >= 0
}
