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

// fullArchive takes one event of the first call that has several. From then on it is full, and takes what is no event.
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

// TestOnlyWhatTheFullStreamLacksIsALetter: what was stored before the stream was full is archived, and no letter.
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
