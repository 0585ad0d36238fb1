package status

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify/continuous"
)

// Seen is what a status is computed from.
type Seen struct {
	Source, Target string
	Instance       string // of the target, as "project/instance", for the commands that are shown
	State          *checkpoint.State
	Pressure       queue.Pressure
	Letters        int
	LettersSince   time.Time // when the oldest of them was refused; zero: not known
	LetterCodes    map[string]int
	Now            change.Millis // service's clock as well as it is known
	ClaimTTL       time.Duration // the owner stores something at least every third of it
	Retry          time.Duration // between two tries of a halted table, which has no owner meanwhile
	Late           time.Duration // how far behind a table may be before it must be seen to move; 0: DefaultLate
	Carried        bool          // a process reports that it carries the table, whatever its log shows
	Closed         bool          // the store of the log was not open in any process
	// Pending returns how many of the changes in the log Bigtable has not got, if the sink has
	// counted them; nil: no sink runs.
	Pending func(changes uint64) (n uint64, known bool)
	Live    *Table // as that process reports it: it knows more about copies and resyncs; nil without one
}

// Of returns how a table is: a function of what was seen and of the time.
func Of(x Seen) Table {
	return Observe(x, nil).At(x.Now.Time(), time.Now())
}

// Late reports whether the table is not ready because it is behind; it may be ready all the same if
// it is seen to move.
func (st Table) Late() bool { return st.reason(WhyLateRead, WhyLateApplied) != nil }

// Moved removes the reasons why the table is late that two looks at its log refute: it is catching
// up.
func (st *Table) Moved(before, after *checkpoint.State) {
	read, applied := after.ReadWatermark() > before.ReadWatermark(), after.LowMark() > before.LowMark()
	st.Explain(slices.DeleteFunc(slices.Clone(st.Why), func(r Reason) bool {
		return read && r.Code == WhyLateRead || applied && r.Code == WhyLateApplied
	})...)
}

// Observed is what was seen at one look at a table. Ages are computed from it whenever a status is
// asked for, so that they grow while nothing new is seen.
type Observed struct {
	status   Table     // without ages and reasons
	lookedAt time.Time // of the look, on this process's monotonic clock

	read, applied    change.Millis // watermarks; 0: unknown
	resync           *checkpoint.PendingResync
	copyIsDue        bool
	streamStart      change.Millis // when the live stream was started, 0 before
	owner            protocol.Owner
	mark             uint64 // of the sink that is furthest behind
	slowest          string // that sink
	waiting          uint64 // entries behind its mark, up to the last one with changes
	started          bool   // a stream is being read
	disabled, paused bool
	pauseReason      string // why reading pauses
	tooFullForBeats  bool   // the log is too full for beats
	ttl, retry, late time.Duration

	// When reading and applying were last seen to make progress.
	readMoved, appliedMoved time.Time
	copyMoved               time.Time // or when there last was no copy to make any
	own                     bool      // this process owns the log

	fencedAt change.Millis // 0: there is no fence
	events   []checkpoint.Event
}

// Observe takes from the state what a status needs. before is the last look of the same process, or
// nil.
func Observe(x Seen, before *Observed) *Observed {
	s := x.State
	o := &Observed{
		lookedAt: time.Now(), read: s.ReadWatermark(), applied: s.AppliedWatermark(), owner: protocol.OwnerOf(s),
		paused: s.Paused, ttl: x.ClaimTTL, retry: x.Retry, late: x.Late,
		resync: s.Resync, copyIsDue: s.Unfinished().Copy.Due(),
		pauseReason: x.Pressure.Reason, tooFullForBeats: x.Pressure.TooFullForBeats, events: s.Events,
	}
	if o.late == 0 {
		o.late = DefaultLate
	}
	noProof := protocol.NoProof(s)
	o.disabled = slices.Contains(noProof, protocol.MissingEnabled)
	if o.started = !slices.Contains(noProof, protocol.MissingStream); o.started {
		o.streamStart = s.LiveStream().Date
	}
	o.mark = s.LowMark()
	o.slowest, o.waiting = s.Unapplied()
	st := &o.status
	*st = Table{
		Source: x.Source, Target: x.Target, Proof: Assumed, DeadLetters: x.Letters,
		Owner: s.Owner, Epoch: s.Epoch, LogFormat: s.Format, Changes: s.Changes, Foreign: s.Foreign,
	}
	st.NotCopied = s.NotCopied()
	o.fencedAt = st.takeFence(s)
	if x.Letters > 0 && !x.LettersSince.IsZero() {
		since := x.LettersSince.UTC()
		st.LettersSince, st.LetterCodes = &since, x.LetterCodes
	}
	st.takeProgress(x)
	st.addTroubles(s)
	st.State = st.stateWord(s)
	st.takeSince(s)
	st.PauseReason = x.Pressure.Reason
	sh := &st.Shards
	sh.Open, sh.Closed, sh.Waiting, sh.Done = s.ShardCounts()
	sh.Unread = endedOpen(s)
	st.Ended = streamEnded(s)
	st.takeProof(s)
	st.takePending(x)
	st.Queue = queueUse(x.Pressure)
	if o.applied > 0 {
		at := o.applied.Time().UTC()
		st.AppliedThrough = &at
	}
	st.ClockAhead = seconds(change.Millis(s.HighestVersion()) - s.Date)
	o.owner.Carried, o.owner.Closed = x.Carried, x.Closed
	o.noteProgress(before, x.Now)
	o.noteCopy(before)
	return o
}

// takeProgress takes how far copy and resync are from the log, and more about them from the process
// that does them.
func (st *Table) takeProgress(x Seen) {
	if st.Copy = resync.ProgressOf(x.State, x.Now); st.Copy != nil && st.Copy.Workers != nil {
		st.Copy.Workers = st.Copy.Workers.At(x.Instance)
	}
	if p := x.State.Resync; p != nil {
		since := p.Asked.Time().UTC()
		st.ResyncSince = &since
	}
	if x.Live == nil {
		return
	}
	st.Requests, st.Verify, st.Archive = x.Live.Requests, x.Live.Verify, x.Live.Archive
	st.Latency, st.Rate, st.ThrottledSince = x.Live.Latency, x.Live.Rate, x.Live.ThrottledSince
	st.LimitedBy, st.Calls, st.Carries, st.Cost = x.Live.LimitedBy, x.Live.Calls, x.Live.Carries, x.Live.Cost
	if c := x.Live.Copy; c != nil && st.Copy != nil && c.ID == st.Copy.ID {
		live := *c
		live.Paused, live.Workers = st.Copy.Paused, st.Copy.Workers // the log is newer
		st.Copy = &live
	}
	if st.ResyncSince != nil {
		st.Resync = x.Live.Resync
	}
}

// Unseen returns a table of which nothing is known since a moment, on this process's clock.
func Unseen(source, target string, since time.Time) *Observed {
	return &Observed{status: Table{Source: source, Target: target, State: "waiting", Proof: Assumed}, lookedAt: since}
}

// LookedAt returns when the table was looked at, on this process's clock.
func (o *Observed) LookedAt() time.Time { return o.lookedAt }

// ReadMoved returns when reading was last seen to make progress, on this process's clock.
func (o *Observed) ReadMoved() time.Time { return o.readMoved }

// Waiting returns how many entries the slowest sink has not applied.
func (o *Observed) Waiting() uint64 { return o.waiting }

// Own reports whether this process owns the log.
func (o *Observed) Own() bool { return o.own }

// CopyMoved returns when the copy was last seen to make progress, on this process's clock.
func (o *Observed) CopyMoved() time.Time { return o.copyMoved }

// Resync returns the resync of the whole table that is pending; nil without one.
func (o *Observed) Resync() *checkpoint.PendingResync { return o.resync }

// SetOwn notes whether this process owns the log.
func (o *Observed) SetOwn(own bool) { o.own = own }

// Now is the state of a table that only its owner holds, beside the log.
type Now struct {
	Halt *checkpoint.Halt // of the pipeline itself, whatever the log shows
	// HaltedAt is when the tries began that end in Halt; 0: with Halt's own.
	HaltedAt change.Millis
	Copy     *resync.Progress    // of the copy that runs
	Resync   *resync.WholeStatus // of the resync of the whole table that runs
	// Requests are the requests of commands for single items that are being done.
	Requests *resync.RequestsStatus
	Verify   *continuous.Status // of the continuous comparison; nil without one
	Archive  *archiving.Status  // nil without one
	// Throttled is since when DynamoDB throttles reading; nil: it does not.
	Throttled *time.Time
	Recent    *latency.Recent // what was applied in the last minutes; nil for a table without a target
	Limit     *limit.Facts    // of the last seconds; nil: not known
	Way       *limit.Way      // without the shards; nil: not known
	Cost      *Cost           // nil: not known
}

// With returns the observation with the owner's present state added.
func (o *Observed) With(n Now) *Observed {
	next := *o
	if h := n.Halt; h != nil {
		next.status.State, next.status.Halt, next.status.Code = "halted", h.Reason, h.Code
		next.status.addHalt(h.Sink, h.Reason)
		at := min(h.At, cmp.Or(n.HaltedAt, h.At)).Time().UTC()
		next.status.Since, next.status.HaltSince, next.status.HaltSink = &at, &at, h.Sink
		next.owner.Seen, next.owner.Retries, next.owner.Owned = max(next.owner.Seen, h.At), true, false
	}
	if n.Copy != nil && next.status.Copy != nil {
		next.status.Copy = n.Copy
	}
	if next.resync != nil {
		next.status.Resync = n.Resync
	}
	next.status.Requests, next.status.Verify, next.status.Archive = n.Requests, n.Verify, n.Archive
	next.status.ThrottledSince = n.Throttled
	next.status.takeRecent(n.Recent)
	next.status.takeLimit(n.Limit, n.Way)
	next.status.Cost = n.Cost
	return &next
}

// noteProgress notes when reading and applying last made progress. The first look takes its
// watermarks for the times at which they were reached.
func (o *Observed) noteProgress(before *Observed, now change.Millis) {
	if before == nil {
		o.readMoved, o.appliedMoved = o.lookedAt.Add(-age(now, o.read)), o.lookedAt.Add(-age(now, o.applied))
		return
	}
	o.readMoved, o.appliedMoved = before.readMoved, before.appliedMoved
	if o.read > before.read {
		o.readMoved = o.lookedAt
	}
	if o.applied > before.applied || o.mark > before.mark {
		o.appliedMoved = o.lookedAt
	}
}

// noteCopy notes when the copy last made progress.
func (o *Observed) noteCopy(before *Observed) {
	o.copyMoved = o.lookedAt
	if c := o.status.Copy; before != nil && c != nil && c.Paused == "" {
		if b := before.status.Copy; b != nil && b.ID == c.ID && b.Items == c.Items {
			o.copyMoved = before.copyMoved
		}
	}
}

// age returns how long ago a moment of the service's clock was; very long for an unknown one.
func age(now, then change.Millis) time.Duration {
	if then == 0 {
		return 100 * 365 * 24 * time.Hour
	}
	return max(0, time.Duration(now-then)*time.Millisecond)
}

// At returns the status at a moment: service is the service's clock, now this process's.
func (o *Observed) At(service, now time.Time) Table {
	st := o.status
	ms := max(change.MillisOf(service), o.owner.Seen)
	st.SourceLag, st.AppliedLag, st.Retention = -1, -1, -1
	// Before every shard was read only the start is known: the table is at least that far behind.
	if t := cmp.Or(o.read, o.streamStart); t > 0 {
		st.SourceLag = seconds(ms - t)
		if !st.Ended { // else nothing is unread
			st.Retention = max(0, (source.Retention - time.Duration(ms-t)*time.Millisecond).Seconds())
		}
	}
	if t := cmp.Or(o.applied, o.streamStart); t > 0 {
		st.AppliedLag = seconds(o.untilFence(ms) - t)
	}
	works := slices.Contains([]string{"running", "copying", "fenced", WrittenBehindFence}, st.State)
	if works && !o.own && o.life(ms).Away() {
		st.State = "waiting"
	}
	st.Explain(o.reasons(&st, ms, now)...)
	return st
}

// untilFence returns the time up to which a lag of the sinks counts: behind a fence nothing is to
// be applied.
func (o *Observed) untilFence(ms change.Millis) change.Millis {
	if o.fencedAt == 0 {
		return ms
	}
	return min(ms, o.fencedAt)
}

// seconds converts milliseconds; 0 for negative ones.
func seconds(ms change.Millis) float64 { return math.Max(0, float64(ms)/1000) }

// stateWord returns the state of a table as status shows it.
func (st *Table) stateWord(s *checkpoint.State) string {
	switch work := s.Unfinished(); {
	case s.Paused:
		return "paused"
	case st.halted():
		return "halted"
	case s.OpenGaps() > 0:
		return "gap"
	case s.LiveStream() == nil:
		return "waiting"
	case s.Fence != nil && s.Fence.Behind > 0:
		return WrittenBehindFence
	case s.Fence != nil:
		return "fenced"
	case work.Resync == checkpoint.ResyncRecovers:
		return "recovering"
	case work.Resync != checkpoint.ResyncNone:
		return "healing"
	case s.DiffersSince() > 0:
		return "gap"
	case work.Copy != checkpoint.CopyNone:
		return "copying"
	}
	return "running"
}

func queueUse(p queue.Pressure) Queue {
	u := Queue{Bytes: p.Bytes, Limit: p.Limit, HoursLeft: -1}
	if !p.Oldest.IsZero() {
		oldest := p.Oldest.UTC()
		u.Oldest = &oldest
	}
	if !math.IsInf(p.HoursLeft, 0) {
		u.HoursLeft = math.Round(p.HoursLeft*100) / 100
	}
	return u
}
