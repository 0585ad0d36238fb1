package protocol

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// Life is what is known of the owner of a log at a time.
type Life string

// The lives.
const (
	// LifeSeen: the log has an owner, and it gave a sign of life lately.
	LifeSeen Life = "seen"
	// LifeRetries: the log has no owner, because its table halted. The process tries again by
	// itself.
	LifeRetries Life = "retries"
	// LifeNone: no process owns the log.
	LifeNone Life = "none"
	// LifeSilent: the owner gave no sign of life for longer than SilentAfter.
	LifeSilent Life = "silent"
)

// Away reports whether no process carries the table, so that only another one could go on.
func (l Life) Away() bool { return l == LifeNone || l == LifeSilent }

// Restart is how long a replicator that is started again may need until it carries its tables.
const Restart = time.Minute

// SilentAfter is for how long an owner may store nothing and count as alive. It stores a beat at
// least every third of the time of a claim. ClaimWatch decides, from what it observed, when another
// process may claim the log: earlier.
func SilentAfter(ttl time.Duration) time.Duration { return 3 * ttl }

// TakeoverPatience is how long a command waits while no process owns a table: until a silent owner
// does not count any more, and for as long as another one needs to start.
func TakeoverPatience(ttl time.Duration) time.Duration { return SilentAfter(ttl) + Restart }

// Owner is what is seen of the owner of a log.
type Owner struct {
	Owned bool          // the log was claimed and not released
	Seen  change.Millis // the newest sign of life, by the service's clock; 0: none
	// Retries: the log was released because its table halted, and its process tries again.
	Retries bool
	// Carried: a process reports that it carries the table, whatever the log shows.
	Carried bool
	// Closed: the store of the log was not open in any process, so no owner lives, however young its
	// newest entry is.
	Closed bool
}

// OwnerOf returns what a state of the log shows of its owner.
func OwnerOf(s *checkpoint.State) Owner {
	o := Owner{Owned: s.Owner != "" && !s.Released, Seen: s.OwnerSeen()}
	o.Retries = !o.Owned && s.AllHalts()[checkpoint.SinkPipeline] != nil
	return o
}

// Silence returns for how long the owner has given no sign of life at a time of the service; a
// hundred years if there never was one.
func (o Owner) Silence(now change.Millis) time.Duration {
	if o.Seen == 0 {
		return 100 * 365 * 24 * time.Hour
	}
	return max(0, time.Duration(now-o.Seen)*time.Millisecond)
}

// Alive decides whether the owner of a log is alive that is silent for a while. ttl is the time of
// a claim, retry the pause of a halted table before it is tried again. It is the only judge of that
// question (Rule 14): status, commands and the owner itself call it.
//
// Rule 13: one answer of LifeSilent proves nothing. Before a command acts on it, it observes the
// silence with an OwnerWatch for a while.
func Alive(o Owner, silent, ttl, retry time.Duration) Life {
	switch {
	case o.Carried:
		return LifeSeen
	case o.Closed:
		return LifeNone
	case o.Retries && silent <= retry+SilentAfter(ttl):
		return LifeRetries
	case !o.Owned:
		return LifeNone
	case silent > SilentAfter(ttl):
		return LifeSilent
	}
	return LifeSeen
}

// OwnerWatch notes signs of life of the owner of one log. The zero OwnerWatch has noted none.
type OwnerWatch struct {
	looked bool
	epoch  uint64
	seen   change.Millis
	rose   time.Time // when a look found one of these two higher than the look before
}

// Silence looks at a log, and returns for how long its owner has stored nothing at a time of the
// service, which is at on this process's clock.
//
// Rule 13: that the newest entry is old by a clock is no silence if an entry of an owner has come
// since the look before. One wrong time of the service makes each entry look old.
func (w *OwnerWatch) Silence(s *checkpoint.State, now change.Millis, at time.Time) time.Duration {
	owner := OwnerOf(s)
	if w.looked && (s.Epoch > w.epoch || owner.Seen > w.seen) { // only an owner's entries raise them
		w.rose = at
	}
	w.looked, w.epoch, w.seen = true, s.Epoch, owner.Seen
	silent := owner.Silence(now)
	if !w.rose.IsZero() {
		silent = min(silent, at.Sub(w.rose))
	}
	return silent
}
