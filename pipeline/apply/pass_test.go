package apply

import (
	"context"
	"errors"
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/life"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue"
)

// Rule 9: an entry has its memory before it is unpacked, and gives it back once, also when it
// cannot be unpacked.
func TestEntryTakesMemoryBeforeItIsUnpacked(t *testing.T) {
	b := NewChangeMemory(1 << 30)
	acks := protocol.NewMarkTracker(checkpoint.Mark{Seq: 1})
	p := &pass{sink: checkpoint.SinkBigtable, o: &Options{Life: &life.Life{}}, acks: acks}
	p.step, p.memory = &passStep{}, b.NewShare()
	frame := &checkpoint.Entry{Body: &checkpoint.Frame{Pages: []checkpoint.PageHead{{Length: 100_000, Records: 3}}}}
	if err := p.submitEntry(t.Context(), checkpoint.Mark{Seq: 2}, frame); err == nil {
		t.Fatal("an entry without its data was unpacked")
	}
	if want := int64(1 << bufferClass(100_000)); b.InUse() != want {
		t.Errorf("%d bytes in use, want %d", b.InUse(), want)
	}
	if mark := acks.Mark().Seq; mark != 1 {
		t.Errorf("the mark passed the entry: %d", mark)
	}
	acks.Abandon()
	acks.Abandon()
	if b.InUse() != 0 {
		t.Errorf("%d bytes in use after the pass ended, want 0", b.InUse())
	}
}

// TestOwnerAppliesNothingBehindALaterClaim: an owner that was frozen may read what the later owner
// has stored before its own next append is refused, and would apply it with a mapping that is not
// in force any more.
func TestOwnerAppliesNothingBehindALaterClaim(t *testing.T) {
	x := newTable(t, nil)
	frozen := x.begin()
	frozen.stop()
	stale := frozen.writer.State()
	later := x.begin()
	claim := stale.Seq + 1
	x.Put("Orders", "p", "1", `"v":{"N":"1"}`)
	x.Until("the later owner has applied a change", func() bool {
		_, lastChanges := later.sink.Acked()
		return lastChanges > 0
	})
	later.stop()
	sink := New(frozen.shared, *frozen.sink.o, frozen.letters, stale)[0]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- sink.Run(ctx) }()
	var err error
	x.Watch.Err = nil
	x.Until("the frozen owner has read the later claim", func() bool {
		if mark, _ := sink.Acked(); mark.Seq >= claim {
			return true
		}
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	})
	if mark, _ := sink.Acked(); !errors.Is(err, queue.ErrLost) || mark.Seq >= claim {
		t.Errorf("applied up to %d, the claim is at %d or later: %v", mark.Seq, claim, err)
	}
}
