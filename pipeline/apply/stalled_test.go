package apply

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/sink/archive"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// fullArchive takes one event of the first call that has several. From then on it is full, and
// takes what is no event.
type fullArchive struct {
	mu   sync.Mutex // covers what follows
	kept int
	full bool
}

func (*fullArchive) Publish(context.Context, archive.Message) error { return nil }

func (a *fullArchive) Store(_ context.Context, records []ledger.Record) (stored int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := range records {
		if records[n].Verdict != ledger.Keep {
			continue
		}
		if a.full || n == 1 {
			a.full = true
			return n, archiving.ErrStalled
		}
		a.kept++
	}
	return len(records), nil
}

// TestOnlyWhatTheFullStreamLacksIsALetter: what was stored before the stream was full is archived,
// and no letter.
func TestOnlyWhatTheFullStreamLacksIsALetter(t *testing.T) {
	a := &fullArchive{}
	x := newTable(t, func(x *table) { x.archive, x.mapping = a, archived })
	for i := range 20 {
		x.Put("Orders", "p", fmt.Sprint(i), `"v":{"N":"1"},"ttl":{"N":"1790000000"}`)
	}
	x.expire()
	l := x.begin()
	l.settle()
	l.Until("the archive has seen everything", func() bool {
		mark, _ := l.sinks[1].Acked()
		return mark.Seq >= l.writer.State().LastFrame
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.full || a.kept == 0 || l.letters.Count() != 20-a.kept {
		t.Errorf("%d letters of 20 events, of which %d are archived", l.letters.Count(), a.kept)
	}
	l.equal()
}

// crashedArchive has no room in the first life, and cannot store either that the last of its events
// are dead letters: the mark does not pass them. In the next life it takes everything, and counts
// what it has of each event.
type crashedArchive struct {
	of      int        // events in all: it crashes when it has refused each of them
	mu      sync.Mutex // covers what follows
	begun   bool       // the next life
	refused map[string]bool
	events  map[string]int
}

func (*crashedArchive) Publish(context.Context, archive.Message) error { return nil }

func (a *crashedArchive) Store(_ context.Context, records []ledger.Record) (stored int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := range records {
		r := &records[n]
		switch wanted := r.Verdict == ledger.Keep || r.Verdict == ledger.Late; {
		case wanted && a.begun:
			a.events[r.ID()]++
		case a.begun:
		case r.Verdict == ledger.Keep:
			for i := n; i < len(records); i++ {
				if records[i].Verdict == ledger.Keep {
					a.refused[records[i].ID()] = true
				}
			}
			return n, archiving.ErrStalled
		case len(a.refused) == a.of:
			return n, archive.ErrAway
		}
	}
	return len(records), nil
}

// An event became a dead letter of the archive, and the process died before the mark passed its
// change. The change is read again, and the archive would take it now: but the letter is retried,
// too, and the event is to be there once.
func TestLetterOfTheArchiveThatIsReplayedIsOneEvent(t *testing.T) {
	const n = 6
	a := &crashedArchive{of: n, refused: map[string]bool{}, events: map[string]int{}}
	x := newTable(t, func(x *table) { x.archive, x.mapping = a, archived })
	for i := range n {
		x.Put("Orders", "p", fmt.Sprint(i), `"v":{"N":"1"},"ttl":{"N":"1790000000"}`)
	}
	x.expire()
	l := x.begin()
	l.Until("all events are letters", func() bool { return l.letters.Count() == n })
	if mark, _ := l.sinks[1].Acked(); mark.Seq >= l.writer.State().LastFrame {
		t.Fatal("the mark passed the letters before the crash")
	}
	l.stop()

	a.mu.Lock()
	a.begun = true
	a.mu.Unlock()
	l = x.begin()
	l.settle()
	l.Until("the archive has seen everything", func() bool {
		mark, _ := l.sinks[1].Acked()
		return mark.Seq >= l.writer.State().LastFrame
	})
	for i := range n {
		item := l.readLater("p", fmt.Sprint(i))
		item.Letters = true // as a retry asks for
		if out := l.resync(item); out.LettersApplied != 1 {
			t.Errorf("item %d: %+v", i, out)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, times := range a.events {
		if times != 1 {
			t.Errorf("event %s is in the archive %d times", id, times)
		}
	}
	if len(a.events) != n || l.letters.Count() != 0 {
		t.Errorf("%d events of %d, %d letters", len(a.events), n, l.letters.Count())
	}
	l.equal()
}
