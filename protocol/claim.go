package protocol

import "time"

// PresencePeriod is how often each process publishes its presence, see package presence.
const PresencePeriod = 2 * time.Second

const (
	// heardLately is how old the last message of the owner's process may be for its words about the
	// log to replace a look at the log. The next message is due after PresencePeriod; a look must
	// follow before the silence counts as a break.
	heardLately = PresencePeriod + 300*time.Millisecond
	// missing is after how long without a message the owner's process counts as gone: four messages
	// are missing.
	missing = 4 * PresencePeriod
	// settled is how long a connection must have lasted before a missing message on it means
	// anything.
	settled = 10 * time.Second
	// handedOver is for how long only the process may claim a log to which its owner has handed it
	// over.
	handedOver = 2 * time.Second
)

// ClaimWatch decides when a log that another process may own can be claimed. The zero value is not
// ready: set TTL and Random.
//
// A claim is never wrong in the sense of losing data: the server refuses the former owner's next
// append. A claim from an owner that lives costs a pause, so a ClaimWatch waits until the owner's
// silence has been observed.
type ClaimWatch struct {
	// TTL is how long nothing must have been appended before another process may claim a log that
	// was not released. Owners append at least every TTL/3.
	TTL time.Duration
	// Random returns a random duration below its argument, so that not all members that wait for a
	// log claim it at once.
	Random func(time.Duration) time.Duration

	seq   uint64    // the log's newest sequence
	since time.Time // since when seq was seen without a break; up to TTL/3 later. Zero: nothing was seen yet

	looked     time.Time // when the log was last looked at, or its owner heard
	connection uint64    // the number of the connection then
	connected  time.Time // when that connection was first seen

	heard  time.Time // when the owner's process was last heard on this connection; zero: never
	free   time.Time // since when the log, whose newest sequence is freeAt, is seen to be free; zero: it is not
	freeAt uint64
}

// Saw notes the log's newest sequence, as its leader gave it. It reports whether the log has grown
// since the last look; false at the first one.
func (w *ClaimWatch) Saw(now time.Time, seq, connection uint64) (grown bool) {
	return w.note(now, seq, connection)
}

// Heard notes when the last message of the process that owns the log arrived, which sequence it had
// appended then, and how long before. It may be called again with the same message. A message that
// was under way for long gives an older sequence, which proves no less: the log has held seq since
// then.
//
// An owner's message counts as a look at the log only while it appends as often as an idle owner
// does. Otherwise the log may be unreachable for all processes, and its silence could not be
// observed.
func (w *ClaimWatch) Heard(at time.Time, seq uint64, ago time.Duration, connection uint64) (grown bool) {
	switch {
	case !at.After(w.heard) || at.Before(w.looked) && connection != w.connection:
		return false
	case at.Before(w.looked):
	case seq > w.seq || ago >= 0 && ago <= w.TTL/3+PresencePeriod:
		grown = w.note(at, max(seq, w.seq), connection)
	}
	w.heard = at
	return grown
}

// note records an observation.
//
// Silence counts only while it is observed: after a break, because the server or this process was
// away, the owner may not have come back yet to append a beat. So the wait starts again, with a
// random part, as all members that wait for the log see the same break.
func (w *ClaimWatch) note(now time.Time, seq, connection uint64) (grown bool) {
	first := w.since.IsZero()
	broken := !first && (connection != w.connection || now.Sub(w.looked) > max(w.TTL/5, time.Second))
	if connection != w.connection || first {
		w.connected = now
	}
	switch {
	case broken:
		w.since, w.heard = now.Add(w.Random(w.TTL/3+1)), time.Time{}
	case first || seq != w.seq:
		w.since = now.Add(w.Random(min(w.TTL/15, time.Second) + 1))
	}
	grown = !first && seq != w.seq
	w.seq, w.looked, w.connection = seq, now, connection
	return grown
}

// Look reports whether the log's newest sequence must be read from the leader now. While messages
// of the owner arrive and report that the log grows, no request is needed.
func (w *ClaimWatch) Look(now time.Time) bool {
	return w.heard.IsZero() || now.Sub(w.heard) > heardLately || now.Sub(w.since) > w.TTL/3+PresencePeriod
}

// Pause is how long to wait before Look is called again.
func (w *ClaimWatch) Pause() time.Duration { return min(w.TTL/10, 500*time.Millisecond) }

// MayWrite reports whether the owner of a log may write to Bigtable now. sent is when it sent the
// newest append that the log has acknowledged, not when the acknowledgement arrived. While MayWrite
// is true, no other process can have claimed the log: it ends a second before the earlier one of the
// two times for which ClaimWatch.Silent waits, and a quarter of ttl before the later one.
//
// Rule 12: the log is fenced by its server, Bigtable is not. An owner that stood still may wake up
// when another one has taken over, a cutover has raised its fence and the application has deleted
// rows. Without their guards nothing in Bigtable would refuse what it still has in hand.
func MayWrite(ttl time.Duration, sent, now Instant) bool {
	return now.Since(sent) < min(ttl/4*3, ttl/3+2*time.Second)
}

// Silent reports whether the log's owner counts as gone: nothing was appended for TTL; or for as
// long as a healthy idle owner is silent and three seconds more, while four messages of its process
// are missing on a connection that holds.
func (w *ClaimWatch) Silent(now time.Time) bool {
	if w.since.IsZero() {
		return false
	}
	silent := now.Sub(w.since)
	gone := !w.heard.IsZero() && now.Sub(w.heard) >= missing && now.Sub(w.connected) >= settled
	return silent >= w.TTL || gone && silent >= w.TTL/3+3*time.Second
}

// WatchedLog is what a fold of the log shows of its owner.
type WatchedLog struct {
	Seq        uint64 // the newest sequence
	Owned      bool   // it was claimed and not released
	HandedTo   string // the process that the release names; "": none, or it is owned
	Connection uint64 // the number of the connection during the fold
}

// May reports whether the process called me may claim the log, after a fold that began when silent
// was Silent. A fold may take long, and is no look. turn is how long the process leaves a log that
// is free to those with less load.
func (w *ClaimWatch) May(me string, l WatchedLog, silent bool, turn time.Duration, now time.Time) bool {
	switch {
	case l.Owned && (!silent || l.Seq != w.seq || l.Connection != w.connection):
		w.free = time.Time{}
		return false
	case l.HandedTo == me && me != "":
		return true
	}
	if w.free.IsZero() || w.freeAt != l.Seq {
		w.free, w.freeAt = now, l.Seq
	}
	if l.HandedTo != "" {
		turn = max(turn, handedOver)
	}
	return now.Sub(w.free) >= turn
}

// Seq returns the log's newest sequence at the last observation.
func (w *ClaimWatch) Seq() uint64 { return w.seq }

// Unseen reports whether nothing was observed yet.
func (w *ClaimWatch) Unseen() bool { return w.since.IsZero() }
