package protocol

import (
	"cmp"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Denial is a negative answer of the service to the reader of a shard.
type Denial uint8

// The negative answers.
const (
	NotFound   Denial = iota + 1 // the service does not know the shard
	Trimmed                      // what follows the position is older than the retention
	NoIterator                   // a page without the iterator that follows: nothing follows in the shard
)

// Evidence is what is known about a shard after a negative answer. The times of this process are on
// its monotonic clock, those in change.Millis on the service's.
type Evidence struct {
	Denial Denial
	// Since and Answered are when the first and the newest negative answer came, without a page of
	// the shard in between. Alike is when the first came of those that denied the same as the
	// newest.
	Since, Alike, Answered time.Time
	Now                    change.Millis
	Read                   change.Millis // everything of the shard that was created before was read; 0: it was never read
	// After is the last record that was read; empty: none was. Horizon is for Trimmed.
	After   change.SequenceNumber
	Horizon Horizon
	Listing *Sighting // nil: none yet
	// EndShown means, for NoIterator, that a listing showed the end of the shard after an earlier
	// such answer, and that the newest answer is about a read that began after that listing. Last
	// is what this answer showed of the last record.
	EndShown bool
	Last     LastRecord
	// Patience is for tests; 0: the constant of that name.
	Patience time.Duration
}

// LastRecord is what a read that ends without an iterator shows of the last record that was read.
type LastRecord uint8

// What a read may show.
const (
	// LastLacks: nothing. Anything that speaks HTTP may give such an answer.
	LastLacks LastRecord = iota
	// LastHeld: the read began at it, and its first page held it and would have held what follows.
	// Only what reads the shard can give that answer.
	LastHeld
	// LastNone: no record was read, the last one cannot be read any more, or it fills a page: no
	// answer can show that nothing follows.
	LastNone
)

// Horizon is what a read from the shard's trim horizon showed, begun after the answer.
type Horizon struct {
	First   change.SequenceNumber // of the first record; empty: there was none, or the read failed
	Nothing bool                  // the service answers that nothing of the shard can be read
}

// Sighting is what a listing shows of the shard.
type Sighting struct {
	Began    time.Time
	Complete bool // every page of the listing was read: only then does absence mean anything
	Listed   bool
	Ended    bool // the shard has an ending sequence number, or a child of it is listed
	// Ending is the ending sequence number. It lies at the shard's last record or above it.
	Ending change.SequenceNumber
	// StreamGone means that there is no listing: the service does not have the stream, while the
	// table does not name another one.
	StreamGone bool
}

// Fate is what becomes of a shard after a negative answer.
type Fate uint8

// The fates.
const (
	ReadOn       Fate = iota + 1 // from the last position: nothing confirms the answer
	ReadAgain                    // at once: a listing shows the end; the read begins at the last record
	NeedsListing                 // only a listing that begins after the answer can decide
	ReadToEnd                    // nothing of the shard is left to read, and nothing of it is lost
	LostRange                    // a gap: what is left of the shard is read from its trim horizon once the gap is accepted
	LostShard                    // a gap that ends the shard
)

// Persistence is how long the service must go on denying a shard that was read within the
// retention, or that was never read and is listed, before that may end it. A listing and an
// iterator may come from servers that do not have a new shard yet; that takes seconds. Such a shard
// is gone only in services that differ from DynamoDB, so a minute costs nothing there; with six
// seconds a short outage would be enough, and with ten minutes the shard's children would wait for
// so long.
const Persistence = time.Minute

// Patience is how long the service must go on with an answer that only the same answer confirms:
// that what follows a position is trimmed, and that nothing follows in a shard that has ended and
// of which no record can be read. With less, an outage of seconds would be enough. It costs
// little: a gap is found a day late anyway, and a shard without a record holds its children back
// for so long.
const Patience = 10 * time.Second

// retention is how long the service keeps a record at least.
const retention change.Millis = 24 * 3600 * 1000

// Gone decides what becomes of a shard after a negative answer to its reader.
//
// Rule 13: one answer ends nothing. A shard is gone only if a complete listing that began after the
// answer lacks it, or shows its end while its last proven read is older than the retention. What a
// listing shows without an end is never ended.
func Gone(e Evidence) Fate {
	switch e.Denial {
	case Trimmed:
		return trimmed(e)
	case NoIterator:
		return ended(e)
	case NotFound:
		if e.Read > 0 && !e.old() && !e.persists() {
			return ReadOn // whatever a listing shows
		}
	}
	return denied(e)
}

// ended decides after a page without the iterator that follows.
//
// Rule 13: a shard is read to its end only if a listing that began after the answer shows the end.
// Records may still stand between the position and the end. None do if the position is the ending
// sequence number. Else a read that began after the listing must answer alike, and it begins
// at the last record that was read, which its page must hold: an empty page is no evidence, however
// often it comes. Where no record can be read again, the answer must last.
func ended(e Evidence) Fate {
	switch s := e.seen(); {
	case s != nil && s.Ending != "" && e.After == s.Ending:
		return ReadToEnd
	case e.EndShown && (e.Last == LastHeld || e.Last == LastNone && e.lasts()):
		return ReadToEnd
	case e.EndShown:
		return ReadOn
	case s != nil && s.Ended:
		return ReadAgain
	case s == nil || !s.Complete && !s.StreamGone:
		return NeedsListing
	}
	return denied(e)
}

// trimmed decides after an answer that records behind the position are gone.
//
// Rule 13: records are trimmed only if the position is older than the retention, or if the oldest
// record that can be read is behind it. A position stays old while nothing is written, and the next
// record is behind it although none is lost. So the service must go on answering that, to fresh
// iterators behind the position.
func trimmed(e Evidence) Fate {
	behind := e.After != "" && e.Horizon.First != ""
	switch {
	case behind && e.Horizon.First.Compare(e.After) <= 0:
		return ReadOn // what was read long ago can still be read
	case !behind && !e.old(), !e.lasts():
		return ReadOn
	case behind, !e.Horizon.Nothing:
		return LostRange
	case e.seen() == nil || !e.Listing.Complete:
		return NeedsListing
	case e.Listing.Listed && !e.Listing.Ended:
		return LostRange
	}
	return LostShard
}

// denied decides, by a listing, whether a shard is gone.
func denied(e Evidence) Fate {
	s := e.seen()
	switch {
	case s == nil || !s.Complete && !s.StreamGone:
		return NeedsListing
	case s.StreamGone:
		return lostIf(e.Read > 0 && e.old() && e.persists())
	case s.Listed && !s.Ended:
		return ReadOn
	case e.Read == 0:
		return lostIf(!s.Listed || e.persists())
	case s.Listed:
		return lostIf(e.old())
	}
	return lostIf(e.old() || e.persists())
}

func lostIf(lost bool) Fate {
	if lost {
		return LostShard
	}
	return ReadOn
}

// seen returns the listing if it began after the answer.
func (e *Evidence) seen() *Sighting {
	if e.Listing == nil || e.Listing.Began.Before(e.Answered) {
		return nil
	}
	return e.Listing
}

// persists reports whether the service has denied the shard for long.
func (e *Evidence) persists() bool { return e.Answered.Sub(e.Since) >= Persistence }

// lasts reports whether the service has gone on with its newest answer.
func (e *Evidence) lasts() bool { return e.Answered.Sub(e.Alike) >= cmp.Or(e.Patience, Patience) }

// old reports whether what follows the last proven read may be older than the retention.
func (e *Evidence) old() bool { return e.Now-e.Read > retention }
