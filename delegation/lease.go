package delegation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/protocol"
)

const (
	// ReadEvery is the pause between two readings of the order by a worker.
	ReadEvery = 15 * time.Second
	// firstReads is the same before a worker has read two beats, which it waits for.
	firstReads = time.Second
	// LeaseAge is how long after the begin of a reading a worker may write. If it were ten times as
	// long, the closing of an order would take as much longer. If it were a tenth, one slow reading
	// would end a job.
	LeaseAge = 60 * time.Second
	// CloseWait is how long after an order was stored as closed the owner appends that to the log.
	// It is longer than LeaseAge and the longest attempt of a call together.
	CloseWait = protocol.ReadingAge
	// BeatEvery is the pause between two beats of the owner.
	BeatEvery = 30 * time.Second
	// LongestSilence is how long the date of the beats may stand still. Without an owner nothing
	// compares the age of the export with the age of tombstones.
	LongestSilence = 5 * time.Minute
	// MostLag is how far Bigtable may be behind the stream while workers begin to write items.
	MostLag change.Millis = 60_000
)

// Beat shows workers that the table has an owner, and what time it is.
type Beat struct {
	Format int           `json:"format"`           // Rule 11: everything stored carries a format number
	Order  string        `json:"order"`            // id
	Date   change.Millis `json:"date"`             // service clock
	Lag    change.Millis `json:"lag,omitempty"`    // how far Bigtable is behind the stream
	Paused bool          `json:"paused,omitempty"` // by an operator
}

// Encode returns the stored form of a beat.
func (b Beat) Encode() ([]byte, error) {
	b.Format = Format
	return json.Marshal(b)
}

// DecodeBeat reads the stored form of a beat. Errors: *NewerFormatError.
func DecodeBeat(stored []byte) (*Beat, error) {
	b := &Beat{}
	if err := json.Unmarshal(stored, b); err != nil {
		return nil, fmt.Errorf("decode the beat of an order: %w", err)
	}
	if b.Format > Format { // Rule 11
		return nil, fmt.Errorf("decode the beat of an order: %w", &NewerFormatError{Have: b.Format})
	}
	return b, nil
}

// Seen is what one reading of a table's row shows.
type Seen struct {
	Order *Order // nil: there is none, or none that this build can read
	Beat  *Beat  // likewise
	Life  uint64 // of the row
	// Held is set where the row permits no writes under any order: there is none, or it is fenced,
	// or a recovery has begun.
	Held bool
}

// Lease decides whether a worker may write under an order. It is for one goroutine.
type Lease struct {
	order string
	life  uint64

	at     protocol.Instant // when the newest good reading began
	closed bool
	beat   Beat
	// moved is when the reading began that showed a later date than the one shortly before. The
	// first date that is read may be a week old, and so may the first one after a week: they show
	// neither an owner nor the time.
	moved protocol.Instant
}

// NewLease returns the lease on an order. It permits nothing before a reading.
func NewLease(o *Order) *Lease { return &Lease{order: o.ID, life: o.Life} }

// Verdict is whether a worker may write.
type Verdict string

// The verdicts. Only Writes and Waits permit an attempt of a call.
const (
	Writes Verdict = "writes"
	// Waits: what was begun may be written, nothing new is begun.
	Waits Verdict = "waits"
	// Unread: the order was not read, or not lately. It may be closed.
	Unread Verdict = "unread"
	// Silent: the date stands still, or was not seen to move. The table may have no owner.
	Silent Verdict = "silent"
	// Closed: the order permits nothing any more, for ever.
	Closed Verdict = "closed"
)

// Permits reports whether an attempt of a call may be sent.
func (v Verdict) Permits() bool { return v == Writes || v == Waits }

// Note notes a reading that began at a time of the worker's clocks, and was answered. A reading
// that failed is not noted: the one before counts until it is too old.
//
// A reading shows the order as it was at its begin or later, so its age is counted from there.
func (l *Lease) Note(began protocol.Instant, s Seen) {
	if !s.Order.Open() || s.Order.ID != l.order || s.Life != l.life || s.Held {
		l.closed = true
		return
	}
	before := l.at
	l.at = began
	if s.Beat == nil || s.Beat.Order != l.order {
		return
	}
	lately := before != (protocol.Instant{}) && began.Since(before) < LeaseAge
	if s.Beat.Date > l.beat.Date && l.beat.Date > 0 && lately {
		l.moved = began
	}
	l.beat = *s.Beat
}

// Judge decides whether a worker may write now. It is asked before every attempt of every call.
//
// Rule 12: a fence, a resync that heals, and the end of a copy wait until no lease on the order is
// left.
func (l *Lease) Judge(now protocol.Instant) Verdict {
	switch {
	case l.closed:
		return Closed
	case l.at == (protocol.Instant{}), now.Since(l.at) >= LeaseAge:
		return Unread
	case l.moved == (protocol.Instant{}), now.Since(l.moved) >= LongestSilence:
		return Silent
	case l.beat.Paused, l.beat.Lag > MostLag:
		return Waits
	}
	return Writes
}

// ReadAfter returns the pause before the next reading: ReadEvery, and less before two beats were
// read.
func (l *Lease) ReadAfter() time.Duration {
	if l.moved == (protocol.Instant{}) && !l.closed {
		return firstReads
	}
	return ReadEvery
}

// Date returns the service's time for the worker: the owner's, advanced by the worker's clocks. 0
// before two beats were read. The worker's own wall clock must not replace it: it decides whether
// the target still has the tombstones that an old version needs.
func (l *Lease) Date(now protocol.Instant) change.Millis {
	if l.moved == (protocol.Instant{}) {
		return 0
	}
	return l.beat.Date + change.Millis(max(now.Since(l.moved), 0)/time.Millisecond)
}
