package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/queue/frame"
	"github.com/tailrace-cdc/replicator/source"
)

// pagesOf returns pages of a shard that each take a third of a frame.
func pagesOf(n int) (pages []*source.Page) {
	at, clock := change.Position{}, change.Version(0)
	for i := range n {
		to := change.Position{After: change.SequenceNumber(fmt.Sprintf("1%020d", i+1))}
		pages = append(pages, &source.Page{Page: change.Page{
			Feed: change.Feed{Stream: "arn", Shard: "shard"}, From: at, To: to, ClockFrom: clock, Clock: clock + 1, Date: 1,
			Records: []change.Record{{SequenceNumber: []byte(to.After), Raw: make([]byte, 64<<10/3)}},
		}})
		at, clock = to, clock+1
	}
	return pages
}

// small is a write loop whose frames hold three of pagesOf.
func small() *writer {
	return &writer{
		o: &Options{MaxPayload: 72 << 10}, watermarks: newWatermarks(), handoff: newHandoff(0), progress: &progress{},
	}
}

func (w *writer) arrive(pages ...*source.Page) {
	for _, p := range pages {
		w.handoff.arrivals <- arrival{page: p}
	}
}

// ends returns where the pages of batches end.
func ends(batches ...*batch) (all []change.SequenceNumber) {
	for _, b := range batches {
		for _, f := range b.frames {
			for _, p := range f.Body.Pages {
				all = append(all, p.To.After)
			}
		}
	}
	return all
}

// A frame is packed ahead once it is full, and its pages hold memory until its turn.
func TestFullFrameIsPackedAhead(t *testing.T) {
	w, acked := small(), make(chan struct{})
	w.current = &batch{frames: make([]frame.Packed, 1)}
	pages := pagesOf(8)
	w.arrive(pages...)
	f := w.packAhead(acked)
	if f == nil || f != &w.ahead.frames[0] || len(w.ahead.frames) != 1 {
		t.Fatalf("packed %v", f)
	}
	if again := w.packAhead(acked); again != f {
		t.Error("another frame is packed beside the one ahead")
	}
	first := w.ahead
	n := len(first.pages)
	if held, rest := pages[0].Bytes, len(pages[0].Records); held*n < len(f.Data) || rest > 0 {
		t.Errorf("%d pages hold %d bytes each and %d records, the frame has %d bytes", n, held, rest, len(f.Data))
	}
	w.ahead = nil
	close(acked)
	w.collect()
	second, err := w.pack()
	if err != nil {
		t.Fatal(err)
	}
	w.collect()
	third, err := w.pack()
	if err != nil {
		t.Fatal(err)
	}
	got := ends(first, second, third)
	if len(got) != len(pages) || !slices.IsSorted(got) {
		t.Errorf("packed up to %v", got)
	}
}

// What does not fill a frame until the acknowledgement waits for the next append, in order.
func TestFewPagesAreNotPackedAhead(t *testing.T) {
	w, acked := small(), make(chan struct{})
	w.current = &batch{frames: make([]frame.Packed, 1)}
	pages := pagesOf(2)
	w.arrive(pages[0])
	close(acked)
	if f := w.packAhead(acked); f != nil || w.ahead != nil {
		t.Fatal("one page is packed ahead")
	}
	w.arrive(pages[1])
	w.collect()
	b, err := w.pack()
	if err != nil || len(ends(b)) != 2 {
		t.Errorf("packed %v, %v", ends(b), err)
	}
}

// Nothing is packed behind a gap: it is stored after the pages before it.
func TestNothingIsPackedAheadBehindAGap(t *testing.T) {
	w := small()
	w.current = &batch{frames: make([]frame.Packed, 1), gap: &request{}}
	w.arrive(pagesOf(8)...)
	if w.packAhead(nil) != nil || w.inHand() {
		t.Error("pages behind a gap are in hand before it is stored")
	}
}

// TestCommandsHaveTheirTurnBeforeAFrameThatIsPackedAhead: behind a tick nothing is taken and nothing
// is stored for a moment, and then the frame.
func TestCommandsHaveTheirTurnBeforeAFrameThatIsPackedAhead(t *testing.T) {
	w := small()
	if arrivals, ready := w.intake(w.rest()); arrivals == nil || ready != nil {
		t.Error("nothing is taken although nothing is in hand")
	}
	w.ahead = &batch{}
	rest := w.rest()
	if arrivals, ready := w.intake(rest); rest == nil || arrivals != nil || ready != nil {
		t.Fatal("a frame that is packed ahead follows at once")
	}
	<-rest
	if arrivals, ready := w.intake(nil); arrivals != nil || ready == nil {
		t.Error("a frame that is packed ahead does not follow")
	}
}

// Rule 9: while reading pauses, nothing is taken from the readers during an append either.
func TestNothingIsPackedAheadWhileReadingPauses(t *testing.T) {
	w, acked := small(), make(chan struct{})
	w.current, w.pressure.Pause = &batch{frames: make([]frame.Packed, 1)}, true
	close(acked)
	w.arrive(pagesOf(8)...)
	if w.packAhead(acked) != nil || w.inHand() || len(w.handoff.arrivals) != 8 {
		t.Error("pages are in hand while reading pauses")
	}
}

// Pages behind a gap wait until it is stored, and so does the gap of another shard.
func TestNothingIsTakenBehindAGap(t *testing.T) {
	w := small()
	gaps := []request{{body: &checkpoint.Gap{}}, {body: &checkpoint.Gap{}}}
	w.arrive(pagesOf(1)...)
	for _, gap := range gaps {
		w.handoff.arrivals <- arrival{gap: gap}
		w.arrive(pagesOf(1)...)
	}
	for i, want := range [][]int{{1, 1}, {1, 1}, {1, 0}} { // pages and gaps of each batch
		w.collect()
		b, err := w.pack()
		if err != nil {
			t.Fatal(err)
		}
		has := 0
		if b.gap != nil {
			has = 1
			if b.gap.body != gaps[i].body {
				t.Errorf("batch %d has another gap", i)
			}
		}
		if len(b.pages) != want[0] || has != want[1] {
			t.Errorf("batch %d: %d pages and %d gaps, want %v", i, len(b.pages), has, want)
		}
	}
}

// Rule 2: a page that cannot be packed ends the life behind the frame before it, and nothing is
// packed behind the page, however often that frame is tried.
func TestPageThatCannotBePackedAheadEndsTheLife(t *testing.T) {
	ctx := t.Context()
	_, log := ownedLog(t)
	w, acked := small(), make(chan struct{})
	w.log = log
	pages := pagesOf(8)
	large := make([]byte, 200<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(large)
	pages[3].Records[0].Raw = large
	w.arrive(pages...)
	w.collect()
	b, err := w.pack()
	if err != nil || len(ends(b)) != 3 {
		t.Fatalf("packed %v, %v", ends(b), err)
	}
	w.current = b
	if w.packAhead(acked) != nil || pages[3].Records != nil {
		t.Fatal("a record that is too large is packed, or holds memory")
	}
	halt := (*outcome.HaltError)(nil)
	if err := w.flush(ctx); !errors.As(err, &halt) || log.State().Changes != 3 {
		t.Errorf("%d changes are stored before %v", log.State().Changes, err)
	}
	if w.ahead != nil {
		t.Errorf("packed behind the page: %v", ends(w.ahead))
	}
}

// What is in hand when the life ends gives its memory back: pages that are packed ahead, that are
// not packed yet, and the one that did not fit.
func TestEndOfALifeReleasesWhatIsInHand(t *testing.T) {
	w := small()
	pages := pagesOf(7)
	w.arrive(pages...)
	w.collect()
	b, err := w.pack()
	if err != nil {
		t.Fatal(err)
	}
	w.ahead = b
	if w.collect(); w.taken.next == nil || len(w.handoff.arrivals) > 0 {
		t.Fatal("not everything is in hand")
	}
	w.dropInHand()
	for i, p := range pages {
		if p.Records != nil || p.Bytes > 0 {
			t.Errorf("page %d holds memory", i)
		}
	}
}

// The write loop does so however it ends, and with what waits for it if the readers have ended
// before.
func TestWriteLoopReleasesWhatItDoesNotStore(t *testing.T) {
	_, log := ownedLog(t)
	w, pages := chainWriter(t, log), pagesOf(3)
	w.take(arrival{page: pages[0]})
	w.arrive(pages[1:]...)
	w.handoff.leave()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.run(ended); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for i, p := range pages {
		if p.Records != nil || p.Bytes > 0 {
			t.Errorf("page %d holds memory", i)
		}
	}
}

// claimedLog returns a queue with a log of at most so many bytes, and the log's owner.
func claimedLog(t *testing.T, maxBytes int64) (*queue.Queue, *queue.Log, *queue.Writer) {
	t.Helper()
	ctx := t.Context()
	q, err := queue.Open(ctx, queue.Options{Pipeline: "p", Dir: t.TempDir(), MaxBytes: maxBytes}, zaptest.NewLogger(t),
		prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	l, err := q.CreateLog(ctx, "Orders", "token")
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.Claim(ctx, queue.ClaimOptions{Owner: "me"})
	if err != nil {
		t.Fatal(err)
	}
	return q, l, w
}

// ownedLog returns a log of one shard, and its owner.
func ownedLog(t *testing.T) (*queue.Log, *queue.Writer) {
	t.Helper()
	ctx := t.Context()
	_, l, log := claimedLog(t, 1<<30)
	start := &checkpoint.Start{Stream: "arn", Date: 1, Shards: []checkpoint.ShardSeen{{ID: "shard"}}}
	if _, err := log.Append(ctx, start, nil); err != nil {
		t.Fatal(err)
	}
	return l, log
}

// A frame that was packed ahead is not stored when the outcome of the one before is unknown: the
// loop ends, and the next life reads its pages again.
func TestUnknownOutcomeEndsWhatIsPackedAhead(t *testing.T) {
	ctx := t.Context()
	l, log := ownedLog(t)
	w := small()
	w.log = log
	pages := pagesOf(8)
	w.arrive(pages...)
	if err := w.store(ctx); err != nil || w.ahead == nil {
		t.Fatalf("ahead: %v, %v", w.ahead, err)
	}
	if pages[0].Bytes > 0 || w.ahead.pages[0].Bytes == 0 {
		t.Error("a page that is stored holds memory, or one that is packed ahead does not")
	}
	if _, err := l.AppendControl(ctx, &checkpoint.Control{Clear: true, By: "other"}); err != nil {
		t.Fatal(err)
	}
	held := append(w.ahead.pages, w.taken.pages...)
	err := w.store(ctx)
	w.dropInHand()
	if err == nil || w.inHand() || w.blocked() {
		t.Fatalf("in hand after %v", err)
	}
	for _, p := range held {
		if p.Bytes > 0 {
			t.Error("a page that is not stored holds memory")
		}
	}
	if err := log.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if s := log.State(); s.Changes != 3 || s.Foreign > 0 {
		t.Errorf("%d changes, %d messages out of the chain", s.Changes, s.Foreign)
	}
	w = small()
	w.log = log
	for rest := pagesOf(8)[3:]; len(rest) > 0 || w.inHand(); rest = nil {
		w.arrive(rest...)
		if err := w.store(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := l.Fold(ctx); err != nil || s.Changes != 8 || s.Foreign > 0 {
		t.Errorf("%d changes, %d messages out of the chain: %v", s.Changes, s.Foreign, err)
	}
}
