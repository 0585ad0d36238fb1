package protocol

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// TestGone, Rule 13: what one answer proves alone, and what confirms it.
func TestGone(t *testing.T) {
	const now, hour = change.Millis(1_700_000_000_000), change.Millis(3600_000)
	first := time.Unix(1_700_000_000, 0)
	seq := func(s string) change.SequenceNumber { return change.SequenceNumber("10000000000000000000" + s) }
	ev := func(a Denial, read change.Millis, lasts time.Duration) Evidence {
		return Evidence{
			Denial: a, Since: first, Alike: first, Answered: first.Add(lasts), Now: now, Read: read, After: seq("5"),
		}
	}
	open := &Sighting{Complete: true, Listed: true}
	closed := &Sighting{Complete: true, Listed: true, Ended: true, Ending: seq("9")}
	reached := &Sighting{Complete: true, Listed: true, Ended: true, Ending: seq("5")}
	absent := &Sighting{Complete: true}
	part := &Sighting{}
	children := &Sighting{Ended: true}
	streamGone := &Sighting{StreamGone: true}
	const never, recent, old = change.Millis(0), now - hour, now - 25*hour
	horizon := func(e Evidence, h Horizon) Evidence { e.Horizon = h; return e }
	shown := func(e Evidence) Evidence { e.EndShown = true; return e }
	unread := func(e Evidence) Evidence { e.After, e.Last = "", LastNone; return e }
	last := func(l LastRecord, e Evidence) Evidence { e.Last = l; return e }
	changed := func(e Evidence) Evidence { e.Alike = e.Answered; return e }
	nothing, behind, before := Horizon{Nothing: true}, Horizon{First: seq("7")}, Horizon{First: seq("5")}
	for _, c := range []struct {
		name    string
		e       Evidence
		listing *Sighting // begins at the answer
		want    Fate
	}{
		{"not found, read an hour ago", ev(NotFound, recent, 0), absent, ReadOn},
		{"for 8 s", ev(NotFound, recent, 8*time.Second), absent, ReadOn},
		{"for a minute, no listing", ev(NotFound, recent, time.Minute), nil, NeedsListing},
		{"for a minute, part of a listing", ev(NotFound, recent, time.Minute), part, NeedsListing},
		{"for a minute, listed open", ev(NotFound, recent, time.Minute), open, ReadOn},
		{"for a minute, listed with an end", ev(NotFound, recent, time.Minute), closed, ReadOn},
		{"for a minute, not listed", ev(NotFound, recent, time.Minute), absent, LostShard},
		{"for a minute, the stream is not found either", ev(NotFound, recent, time.Minute), streamGone, ReadOn},
		{"not found, read yesterday, no listing", ev(NotFound, old, 0), nil, NeedsListing},
		{"not found, read yesterday, listed open", ev(NotFound, old, time.Hour), open, ReadOn},
		{"not found, read yesterday, listed with an end", ev(NotFound, old, 0), closed, LostShard},
		{"not found, read yesterday, not listed", ev(NotFound, old, 0), absent, LostShard},
		{"read yesterday, the stream is not found either", ev(NotFound, old, 0), streamGone, ReadOn},
		{"the same for a minute", ev(NotFound, old, time.Minute), streamGone, LostShard},
		{"never read, listed open", ev(NotFound, never, time.Hour), open, ReadOn},
		{"never read, listed with an end", ev(NotFound, never, 8*time.Second), closed, ReadOn},
		{"never read, listed with an end, for a minute", ev(NotFound, never, time.Minute), closed, LostShard},
		{"never read, not listed", ev(NotFound, never, 0), absent, LostShard},
		{"never read, the stream is not found either", ev(NotFound, never, time.Hour), streamGone, ReadOn},

		{"no iterator, no listing", ev(NoIterator, recent, 0), nil, NeedsListing},
		{"no iterator, part of a listing", ev(NoIterator, recent, 0), part, NeedsListing},
		{"no iterator, children", ev(NoIterator, recent, 0), children, ReadAgain},
		{"no iterator, listed with an end", ev(NoIterator, recent, 0), closed, ReadAgain},
		{"at the end that is listed", ev(NoIterator, recent, 0), reached, ReadToEnd},
		{"nothing was read", unread(ev(NoIterator, recent, time.Hour)), closed, ReadAgain},
		{"the end is listed, an empty page", shown(ev(NoIterator, recent, 0)), nil, ReadOn},
		{"the end is listed, empty pages for an hour", shown(ev(NoIterator, recent, time.Hour)), closed, ReadOn},
		{"the end is listed, the last record alone", last(LastHeld, shown(ev(NoIterator, recent, 0))), nil, ReadToEnd},
		{"the last record alone, no end is listed", last(LastHeld, ev(NoIterator, recent, 0)), open, ReadOn},
		{"the end is listed, no record", shown(unread(ev(NoIterator, recent, 8*time.Second))), nil, ReadOn},
		{"the end is listed, no record for long", shown(unread(ev(NoIterator, recent, Patience))), nil, ReadToEnd},
		{"no record, other answers before", changed(shown(unread(ev(NoIterator, recent, time.Hour)))), nil, ReadOn},
		{"the last record is gone", last(LastNone, shown(ev(NoIterator, recent, 0))), nil, ReadOn},
		{"the last record is gone, for long", last(LastNone, shown(ev(NoIterator, recent, Patience))), nil, ReadToEnd},
		{"no iterator, listed open", ev(NoIterator, old, time.Hour), open, ReadOn},
		{"no iterator, not listed", ev(NoIterator, recent, 8*time.Second), absent, ReadOn},
		{"no iterator, not listed for a minute", ev(NoIterator, recent, time.Minute), absent, LostShard},

		{"trimmed, read an hour ago", ev(Trimmed, recent, time.Hour), nil, ReadOn},
		{"the horizon is trimmed too", horizon(ev(Trimmed, recent, time.Hour), nothing), absent, ReadOn},
		{"the horizon is at the position", horizon(ev(Trimmed, old, time.Hour), before), nil, ReadOn},
		{"the horizon is behind the position", horizon(ev(Trimmed, recent, 8*time.Second), behind), nil, ReadOn},
		{"the horizon is behind it for long", horizon(ev(Trimmed, recent, Patience), behind), nil, LostRange},
		{"for long, and other answers before", changed(horizon(ev(Trimmed, recent, time.Hour), behind)), nil, ReadOn},
		{"trimmed, read yesterday", ev(Trimmed, old, 8*time.Second), nil, ReadOn},
		{"trimmed for long, read yesterday", ev(Trimmed, old, Patience), nil, LostRange},
		{"nothing is left", horizon(ev(Trimmed, old, 8*time.Second), nothing), absent, ReadOn},
		{"nothing is left, no listing", horizon(ev(Trimmed, old, Patience), nothing), nil, NeedsListing},
		{"nothing is left, part of a listing", horizon(ev(Trimmed, old, Patience), nothing), part, NeedsListing},
		{"nothing is left, listed open", horizon(ev(Trimmed, old, Patience), nothing), open, LostRange},
		{"nothing is left, listed with an end", horizon(ev(Trimmed, old, Patience), nothing), closed, LostShard},
		{"nothing is left, not listed", horizon(ev(Trimmed, old, Patience), nothing), absent, LostShard},
		{"no position, read an hour ago", horizon(unread(ev(Trimmed, recent, time.Hour)), behind), nil, ReadOn},
		{"no position, read yesterday", horizon(unread(ev(Trimmed, old, 8*time.Second)), behind), nil, ReadOn},
		{"no position, for long", horizon(unread(ev(Trimmed, old, Patience)), behind), nil, LostRange},
	} {
		if c.listing != nil {
			at := *c.listing
			at.Began = c.e.Answered
			c.e.Listing = &at
		}
		if got := Gone(c.e); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if c.listing == nil {
			continue
		}
		c.e.Listing.Began = c.e.Answered.Add(-time.Millisecond) // it confirms nothing of what came after it
		if got := Gone(c.e); got == LostShard || got == ReadToEnd || got == ReadAgain {
			t.Errorf("%s, by a listing from before the answer: %v", c.name, got)
		}
	}
}
