package apply

import (
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// Rule 9: an entry has its memory before it is unpacked, and gives it back once, also when it cannot be unpacked.
func TestEntryTakesMemoryBeforeItIsUnpacked(t *testing.T) {
	b := newMemoryBudget(1 << 30)
	acks := newAckTracker(checkpoint.Mark{Seq: 1})
	p := &pass{sink: SinkBigtable, acks: acks, memory: b.newShare()}
	frame := &checkpoint.Entry{Body: &checkpoint.Frame{Pages: []checkpoint.PageHead{{Length: 100_000, Records: 3}}}}
	if err := p.submitEntry(t.Context(), checkpoint.Mark{Seq: 2}, frame); err == nil {
		t.Fatal("an entry without its data was unpacked")
	}
	if want := int64(1 << bufferClass(100_000)); b.used != want {
		t.Errorf("%d bytes in use, want %d", b.used, want)
	}
	if mark := acks.mark().Seq; mark != 1 {
		t.Errorf("the mark passed the entry: %d", mark)
	}
	acks.abandon()
	acks.abandon()
	if b.used != 0 {
		t.Errorf("%d bytes in use after the pass ended, want 0", b.used)
	}
}
