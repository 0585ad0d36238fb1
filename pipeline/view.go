package pipeline

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/verify/continuous"
)

// tableView is what a table's goroutines publish about it. Any goroutine may read it.
type tableView struct {
	*env
	unseen atomic.Pointer[time.Time] // the start of the process, or later the last sign of life of a rival

	owning  atomic.Bool                  // the loops of a life run
	claimed atomic.Bool                  // this process has claimed the log
	saved   atomic.Bool                  // and released it with the newest marks in it
	unsaved atomic.Bool                  // the table ended as owner of a log that was not released with them
	started atomic.Bool                  // the state is loaded, owning or standing by
	waiting atomic.Bool                  // for the log, with everything else ready
	changes atomic.Uint64                // in the log, as the owner saw it last
	writer  atomic.Pointer[queue.Writer] // of the claimed log; nil while it is not claimed
	applies atomic.Pointer[apply.Sink]   // into Bigtable; nil between two lives, and without a target
	history *latency.History
	// reported is what the histogram had counted at the last report; keepHistory's goroutine alone
	// uses it.
	reported latency.Counts
	detail   status.Watched
	halted   atomic.Pointer[checkpoint.Halt]
	haltedAt atomic.Int64                    // change.Millis of the first halt for the same reason without work since
	note     atomic.Pointer[status.Reason]   // see Pipeline.Note
	seen     atomic.Pointer[status.Observed] // what the owner saw last; nil before the first claim, and beside a rival
	stored   atomic.Pointer[status.Observed] // what the log held before the last try to claim it; nil without a log
	rival    atomic.Pointer[rival]           // who else owns the log, while this process waits for it

	// The inputs of a copy, as the owner last found them: the time up to which Bigtable has
	// everything, 0 unknown, and the end of the latest gap.
	applied, gapsUntil atomic.Int64
	copier             atomic.Pointer[resync.Copier] // that runs; nil without one

	resync     atomic.Pointer[checkpoint.PendingResync] // of the whole table, that the log asks for
	lastResync atomic.Pointer[checkpoint.Healed]        // the last one that is complete
	whole      atomic.Pointer[resync.Whole]             // that does it
	requests   atomic.Pointer[resync.Requests]          // of the current life, or of the last one
	verifier   atomic.Pointer[continuous.Runner]        // of the current life, or of the last one; nil without one
	gapsToHeal atomic.Pointer[openGaps]                 // that are to heal by themselves
	premises   atomic.Pointer[protocol.Premises]        // of the queue's streams, at the last look
	settings   atomic.Pointer[protocol.Premises]        // of Bigtable and the archive's bucket, at the last look
	archiveView
}

// rival is another process that owns the table's log.
type rival struct {
	owner string
	epoch uint64
	moved time.Time // when the log was last seen to grow, or the owner was heard
}

// observe publishes what the log holds.
func (v *tableView) observe(s *checkpoint.State, p queue.Pressure, letters int) {
	o := status.Observe(status.Seen{
		Source: v.Source, Target: v.Target, State: s, Pressure: p, Letters: letters,
		Now: v.now(), ClaimTTL: v.o.Periods.ClaimTTL, Retry: v.o.Periods.Retry, Late: v.o.Periods.Late,
		Pending: v.pending,
	}, v.seen.Load())
	o.SetOwn(!s.Released)
	v.seen.Store(o)
	v.changes.Store(s.Changes)
	v.applied.Store(int64(s.AppliedBy(apply.SinkBigtable)))
	v.gapsUntil.Store(int64(s.GapsUntil()))
	v.observeGaps(s)
	v.observeArchive(s)
	v.detail.Observe(s, v.now())
}

// halt publishes why the table stands still until the next try.
func (v *tableView) halt(h *checkpoint.Halt) {
	if outcome.LogHalt(v.log, v.halted.Swap(h), h, v.o.Periods.Retry) {
		v.haltedAt.Store(int64(h.At))
	}
}

// beating notes that the table works: what halted it is over, unless that followed from the row and
// the row is not known.
func (v *tableView) beating(rowKnown bool) {
	if h := v.halted.Load(); h != nil && (rowKnown || !outcome.ByRow(h.Code)) {
		v.halted.Store(nil)
	}
}

// observeStored publishes what the log holds of a table that cannot begin.
func (v *tableView) observeStored(s *checkpoint.State) {
	v.stored.Store(status.Observe(status.Seen{
		Source: v.Source, Target: v.Target, State: s, Now: v.now(), ClaimTTL: v.o.Periods.ClaimTTL,
		Retry: v.o.Periods.Retry, Late: v.o.Periods.Late,
	}, v.stored.Load()))
}

// showSink lets the view ask the table's first sink until the returned function is called. The
// archive's, where it is the only one, is not asked.
func (v *tableView) showSink(s *apply.Sink) (stop func()) {
	if s.Name() == apply.SinkBigtable {
		v.applies.Store(s)
	}
	return func() { v.applies.Store(nil) }
}

// pending returns how many of the changes in the log Bigtable has not got; false while that is
// unknown.
func (v *tableView) pending(changes uint64) (n uint64, known bool) {
	sink := v.applies.Load()
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
}

// observeGaps publishes the resync that the log orders, and the gaps that nothing heals yet.
func (v *tableView) observeGaps(s *checkpoint.State) {
	v.lastResync.Store(s.LastResync)
	v.resync.Store(s.Resync)
	if v.OnGap != onGapHeal {
		return
	}
	gaps := &openGaps{}
	for _, g := range s.GapsToHeal() {
		gaps.ids = append(gaps.ids, g.ID())
		gaps.damage = gaps.damage || g.Feed.Shard == "" && !g.Accepted
	}
	v.gapsToHeal.Store(gaps)
}

// status returns how the table is now, as far as this process has found, with its noted reasons.
func (v *tableView) status(now time.Time) TableStatus {
	st := v.seenStatus(now)
	st.Add(premiseReasons(v.unnamed(&st))...)
	if note := v.note.Load(); note != nil {
		st.Put(*note)
	}
	return st
}

func (v *tableView) seenStatus(now time.Time) TableStatus {
	halt, rival := v.halted.Load(), v.rival.Load()
	if rival != nil && halt == nil {
		return v.standBy(rival, now)
	}
	known := status.Now{Halt: halt, HaltedAt: change.Millis(v.haltedAt.Load()), Requests: v.requests.Load().Status()}
	if c := v.copier.Load(); c != nil {
		known.Copy = c.Progress()
	}
	if w := v.whole.Load(); w != nil {
		known.Resync = w.Status()
	}
	if c := v.verifier.Load(); c != nil {
		known.Verify = c.Status()
	}
	if a := v.archiver.Load(); a != nil {
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
	seen := v.seen.Load()
	if seen == nil && halt != nil {
		seen = v.stored.Load()
	}
	if seen != nil {
		return seen.With(known).At(v.now().Time(), now)
	}
	// Nothing is known since that time, so nothing is younger than that.
	unseen := *v.unseen.Load()
	st := status.Unseen(v.Source, v.Target, unseen).With(known).At(v.now().Time(), now)
	if halt == nil {
		st.SourceLag, st.AppliedLag = now.Sub(unseen).Seconds(), now.Sub(unseen).Seconds()
		st.Explain(status.Reason{Code: status.WhyNotStarted,
			Text: "not started yet; nothing is known of it for " + status.Ago(now.Sub(unseen))})
	} else {
		st.Explain(status.HaltedBy(halt.Reason))
	}
	return st
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

// broken returns the settings that are not as they must be.
func (v *tableView) broken() (all protocol.Premises) {
	for _, found := range []*protocol.Premises{v.premises.Load(), v.settings.Load()} {
		if found != nil {
			all = append(all, found.Broken()...)
		}
	}
	return all
}

// unnamed returns the settings that are not as they must be, without the one that the table's halt
// names already.
func (v *tableView) unnamed(st *TableStatus) protocol.Premises {
	halt := v.halted.Load()
	ofQueue := halt != nil && halt.Code == outcome.CodePremise
	ofSink := !ofQueue && st.Code == outcome.CodePremise
	return slices.Concat(besideHalt(v.premises.Load(), ofQueue), besideHalt(v.settings.Load(), ofSink))
}

// besideHalt returns the settings that are not as they must be; if they halted the table, without
// the unsafe one that did.
func besideHalt(found *protocol.Premises, halted bool) protocol.Premises {
	if found == nil {
		return nil
	}
	broken := found.Broken()
	if i := slices.IndexFunc(broken, func(p protocol.Premise) bool { return p.Unsafe }); halted && i >= 0 {
		broken = slices.Delete(broken, i, i+1) // a copy: Broken clones
	}
	return broken
}

// premiseReasons returns why a table is not ready because of settings that are not as they must be.
func premiseReasons(broken protocol.Premises) (reasons []status.Reason) {
	for i := range broken {
		reasons = append(reasons, status.Reason{Code: status.WhyPremise, Text: broken[i].Text()})
	}
	return reasons
}
