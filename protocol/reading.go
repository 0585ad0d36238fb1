package protocol

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// These times keep an item that was read from the table itself, by a copy or a resync, from
// standing in the way of the stream's changes.
const (
	// ReadingMargin is how far below the time of its read an item's version is, in ms. A change
	// that the read has not seen has a higher version, because the clocks of the service's hosts
	// differ by less.
	ReadingMargin = 60_000

	// ReadingAge is how old a read may be when its item is written. The version of an old read
	// would still beat a change that was lost in a gap, so that an owner that was frozen for a day
	// would bring back what was deleted since. A resync that heals a gap begins when everything
	// read before its order is as old.
	ReadingAge = 2 * time.Minute

	// AnswerMargin is added to the Date of a reply, in ms: Date is cut to seconds, and the clocks
	// of the service's hosts differ. Everything up to then must be applied before the items of the
	// reply are written.
	AnswerMargin change.Millis = 5_000

	// lateWrites is the time from what made rows differ to the first read of a resync of the whole
	// table. An owner that froze in the middle of a copy, and was replaced, may bring back an item
	// that was deleted since, for as long as its read is young enough; only a row that is looked at
	// later is sure to be seen. In a new life it also covers records created before its begin,
	// which are not applied: some hosts of the service cut their times to whole minutes.
	lateWrites = change.Millis(ReadingAge/time.Millisecond) + AnswerMargin
)

// Reading is when items were read from the table itself.
type Reading struct {
	Requested change.Millis // the service's clock, not later than the request
	At        Instant       // this process's clocks at the request
}

// Fresh reports whether what was read may still be written, gapsUntil being the end of the latest
// gap that was found: checkpoint.State.GapsUntil. An item that was read before may have been
// deleted in a gap, and the resync that heals it may have passed the item's rows already.
func (r Reading) Fresh(now Instant, gapsUntil change.Millis) bool {
	return now.Since(r.At) < ReadingAge && r.Requested > gapsUntil
}

// Version returns the version of an item that was requested at a time, in a life with a floor.
//
// A change that the read lacks was made after the request, so its version is higher. A change that
// the read includes may have a higher version, too: then the write is skipped and the stream's row
// stays.
func Version(requested change.Millis, floor change.Version) change.Version {
	return max(change.Version(requested)-ReadingMargin, change.LowestRead(floor))
}

// DateStep is the precision of the service's Date with some reserve, in ms: a Date may be earlier
// than the reading by that.
const DateStep change.Millis = 1_500

// ResyncFrom returns the time of the service from which on a resync of the whole table may read it,
// so that every repair gets a version above all versions that were lost: after the latest gap and
// the order, each repair's version being ReadingMargin below its read. What heals a gap or begins a
// life also outwaits the writes of earlier owners. A recovery need not wait until the clock passes
// p.Above, the highest version given out, because the floor of the new life is above that already.
// It must where it heals gaps as well: those may lie in the new life.
//
// It returns false while workers outside the daemon may write. They may bring back what a gap has
// deleted, at any time until their order is closed.
func ResyncFrom(p *checkpoint.PendingResync, f RowFacts) (from change.Millis, ok bool) {
	from = max(f.GapsUntil+ReadingMargin, p.Asked, f.OrderClosed)
	if p.Recover || len(p.Gaps) > 0 {
		from = max(f.GapsUntil, p.Asked, f.OrderClosed) + lateWrites
	}
	if !p.Recover || len(p.Gaps) > 0 {
		from = max(from, change.Millis(p.Above)+ReadingMargin)
	}
	return from + DateStep, !f.WorkersMayWrite
}

// RowFacts are what a log holds of that which makes rows differ from the table.
type RowFacts struct {
	GapsUntil       change.Millis // the end of the latest gap that was found; 0 without one
	WorkersMayWrite bool          // under the order of a copy
	OrderClosed     change.Millis // when the last such order was closed; 0 without one
}

// RowFactsOf returns the facts of a log.
func RowFactsOf(s *checkpoint.State) RowFacts {
	f := RowFacts{GapsUntil: s.GapsUntil(), WorkersMayWrite: s.WorkersMayWrite()}
	if s.Copy != nil {
		f.OrderClosed = s.Copy.Closed
	}
	return f
}

// CopyFrom returns the time of the service from which on a copy may read its first page: what was
// written around the first start must be in the part of the stream that is read.
func CopyFrom(c *checkpoint.CopyState) change.Millis { return c.Began + DateStep }
