package status

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline/apply"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/protocol"
)

// lowRetention is the retention below which a table is not ready: time enough for an operator to
// act.
const lowRetention = apply.ParkBelow

// ownerless begins the reason of a table without an owner; the state of its verdict says the same.
const ownerless = "no owner: "

// reasons returns why a table is not ready.
//
// Rule 10: ready means progress or idleness of every live shard now, and nothing open; never "the
// process is up".
func (o *Observed) reasons(st *Table, ms change.Millis, now time.Time) (why []Reason) {
	add := func(cond bool, code ReasonCode, what string, args ...any) {
		if cond {
			why = append(why, Reason{code, fmt.Sprintf(what, args...)})
		}
	}
	silent := Ago(o.owner.Silence(ms))
	switch life := o.life(ms); {
	case life == protocol.LifeNone:
		add(true, WhyNoOwner, ownerless+"no replicator carries the table")
	case life != protocol.LifeSilent: // LifeRetries: the halt is reason enough
	case o.tooFullForBeats:
		add(!o.own, WhyNoOwner, "no sign of life of the owner for %s: the log is too full for beats", silent)
	case o.own:
		add(true, WhyNotStored, "nothing could be stored in the log for %s", silent)
	default:
		add(true, WhyNoOwner, "no sign of life of the owner for %s", silent)
	}
	add(!o.started, WhyNotStarted, "not started: no listing of the stream is in the log")
	gone := o.started && st.Code == outcome.CodeSourceGone // at a start: it was there when the log began
	add(gone, WhyVanished, hasVanished)
	add(o.disabled && !gone, WhyStreamOff, "the stream is disabled: what is written now is in no stream")
	why = append(why, st.unreadReasons()...)
	add(st.BehindFence != nil, WhyBehindFence, "%s", st.behindReason())
	add(o.paused, WhyPaused, "paused")
	add(o.pauseReason != "", WhyReadingPauses, "reading pauses: %s", o.pauseReason)
	why = append(why, st.haltReasons()...)
	left := time.Duration(st.Retention * float64(time.Second))
	add(left >= 0 && left < lowRetention, WhyLowRetention, "unread changes are lost %s", within(left.Seconds()))
	why = append(why, st.gapReasons()...)
	if o.resync != nil {
		add(true, WhyResyncing, "%s", st.resyncReason(o.resync, now))
	}
	if st.Copy != nil {
		add(true, WhyCopying, "copying: %s", st.Copy.Sentence())
	}
	add(o.copyIsDue, WhyCopyDue, "the copy of the table has not begun yet")
	add(st.DeadLetters > 0, WhyLetters, "%s", plural(st.DeadLetters, "dead letter"))
	add(o.started && st.AppliedThrough == nil, WhyNotAllRead, "not every shard has been read and applied yet")
	limit := o.late.Seconds()
	add(o.read > 0 && !st.Ended && st.SourceLag > limit && now.Sub(o.readMoved) > o.late, WhyLateRead,
		"nothing shows that what was written in the last %s has been read", lagWord(st.SourceLag))
	add(o.waiting > 0 && st.AppliedLag > limit && now.Sub(o.appliedMoved) > o.late, WhyLateApplied,
		"%s of the log wait for sink %s, the oldest for %s", Entries(o.waiting), o.slowest, lagWord(st.AppliedLag))
	return why
}

func lagWord(seconds float64) string { return Ago(time.Duration(seconds * float64(time.Second))) }

// Entries returns a number of entries in words.
func Entries(n uint64) string {
	if n == 1 {
		return "1 entry"
	}
	return strconv.FormatUint(n, 10) + " entries"
}

// Word returns the state of a table for people: State, or what slows a table that runs, by the
// words of the verdict.
func (st *Table) Word() string {
	switch {
	case st.State != "running":
		return st.State
	case st.PauseReason != "":
		return "reading pauses"
	case st.ThrottledSince != nil:
		return StateThrottled
	}
	return st.State
}

// DefaultLate is how far a table may be behind and count as ready: an idle shard is asked every
// idle_poll, and the children of a shard that ended are listed within a minute and a half.
const DefaultLate = 2 * time.Minute

// life returns what is known of the owner at a time of the service. In a process that owns the log,
// the owner counts as owned.
func (o *Observed) life(ms change.Millis) protocol.Life {
	owner := o.owner
	owner.Owned = owner.Owned || o.own
	return protocol.Alive(owner, owner.Silence(ms), o.ttl, o.retry)
}
