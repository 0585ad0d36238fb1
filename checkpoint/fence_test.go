package checkpoint

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
)

// fenced is a log with a frame, a fence of id "f" behind it, and a mark of the sink at the start of
// the log.
func fenced(t *testing.T) *writer {
	t.Helper()
	w := owned(t, seen("a")...)
	w.must(t, &Marks{Sinks: map[string]Mark{SinkBigtable: {Seq: 1}}}, frame(page(w.s, "a", 3, false)))
	w.must(t, &Control{Fence: &FenceOrder{ID: "f"}, At: 2_000_000, By: "me"})
	return w
}

func markAt(seq uint64) *Marks { return &Marks{Sinks: map[string]Mark{SinkBigtable: {Seq: seq}}} }

func TestSinkStandsAtTheFence(t *testing.T) {
	w := fenced(t)
	at, last := w.s.Seq, w.s.Seq-1
	want := &Fence{ID: "f", Seq: at, Last: last, At: 2_000_000, By: "me"}
	if d := cmp.Diff(want, w.s.Fence); d != "" || w.s.StandsAtFence() {
		t.Fatalf("stands %v, fence %s", w.s.StandsAtFence(), d)
	}
	w.must(t, markAt(last-1), frame(page(w.s, "a", 2, false)), &Beat{})
	if w.s.StandsAtFence() {
		t.Error("the newest change before the fence is not applied")
	}
	w.must(t, &Marks{Sinks: map[string]Mark{"archive": {Seq: 2}}})
	if sink, n := w.s.Unapplied(); sink != "archive" || n != w.s.LastFrame-2 {
		t.Errorf("%s has %d entries to apply", sink, n)
	}
	w.must(t, markAt(last), &Marks{Sinks: map[string]Mark{"archive": {Seq: w.s.LastFrame}}})
	if sink, n := w.s.Unapplied(); n != 0 {
		t.Errorf("%s has %d entries to apply behind the fence", sink, n)
	}
	if !w.s.StandsAtFence() {
		t.Error("everything before the fence is applied")
	}
	if got := w.s.AppliedMark(); got != w.s.LastFrame { // what is behind the fence is not for Bigtable
		t.Errorf("applied up to %d, and Bigtable has what it is to have up to %d", got, w.s.LastFrame)
	}
	w.must(t, markAt(at), &Marks{Sinks: map[string]Mark{"archive": {Seq: w.s.Seq}}})
	corrupt := (*CorruptError)(nil)
	if err := w.s.CheckNext(markAt(at + 1)); !errors.As(err, &corrupt) {
		t.Errorf("a mark behind the fence: %v", err)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
	w.must(t, &Control{Fence: &FenceOrder{ID: "f", Undo: true}}, markAt(w.s.Seq))
	if w.s.Fence != nil || w.s.StandsAtFence() {
		t.Errorf("after the undo: %+v", w.s.Fence)
	}
}

// TestNothingIsOrderedBehindAFence: the writer refuses it, and the fold of a log that holds it all
// the same ignores it.
func TestNothingIsOrderedBehindAFence(t *testing.T) {
	w := fenced(t)
	from := mappingOf(w.s)
	for _, body := range []any{
		&Copy{ID: "c", Why: CopyMapping, From: FromScan, Parts: 1},
		&Control{Resync: &ResyncOrder{ID: "r"}}, &Control{Accept: &Accept{From: from, To: "new"}},
		&Control{Copy: &CopyOrder{ID: "c", Do: CopyResume}}, &Control{Fence: &FenceOrder{ID: "other"}},
		&Control{Fence: &FenceOrder{ID: "other", Undo: true}},
	} {
		refused := (*FenceError)(nil)
		if err := w.s.CheckNext(body); !errors.As(err, &refused) {
			t.Errorf("%+v: %v", body, err)
		}
		if _, ok := body.(*Control); !ok {
			continue
		}
		s := w.l.fold(t)
		if _, err := s.Apply(s.Seq+1, w.message(t, body, nil)); err != nil {
			t.Fatal(err)
		}
		if s.Resync != nil || s.Accepting != nil || s.Fence == nil || s.Fence.ID != "f" {
			t.Errorf("%+v is executed: %s", body, stateJSON(s))
		}
	}
	pause := true
	w.must(t, &Control{Fence: &FenceOrder{ID: "f"}}, &Control{Pause: &pause}, &Control{Resume: true},
		frame(page(w.s, "a", 1, false)), &Beat{})
	if w.s.Fence.Seq != 5 {
		t.Errorf("the same fence again moves it to %d", w.s.Fence.Seq)
	}
}

// What is written behind a fence is counted, but for deletions by TTL, and stays counted through
// snapshots until the fence is taken away. It forbids the note that the certificate was issued.
func TestChangesBehindAFenceAreCounted(t *testing.T) {
	w := fenced(t)
	certify := &Control{Certify: &Certify{ID: "f"}, At: 3_000_000}
	for _, other := range []*Control{{Certify: &Certify{ID: "other"}}, {Certify: &Certify{}}} {
		if err := w.s.CheckNext(other); !errors.As(err, new(*FenceError)) {
			t.Errorf("%+v: %v", other.Certify, err)
		}
	}
	w.must(t, &Beat{}, frame(page(w.s, "a", 0, false)))
	ttl := page(w.s, "a", 2, false)
	ttl.Oldest, ttl.Expired = 2_500_000, CountsByHour{1: 1, 2: 1}
	w.must(t, frame(ttl), certify, certify)
	if f := w.s.Fence; f.Behind != 0 || f.BehindSince != 0 || f.Certified != 3_000_000 {
		t.Errorf("beats and deletions by TTL, then a certificate: %+v", f)
	}
	before, held := *w.s.Fence, w.s.Fence
	mixed := page(w.s, "a", 4, false)
	mixed.Oldest, mixed.Expired = 3_500_000, CountsByHour{1: 1}
	w.must(t, frame(mixed))
	later := page(w.s, "a", 2, false)
	later.Oldest = 4_500_000
	w.must(t, frame(later))
	late := page(w.s, "a", 1, false)
	late.Oldest = 3_200_000 // as of a shard that is read later than others
	w.must(t, frame(late))
	if f := w.s.Fence; f.Behind != 6 || f.BehindSince != 3_200_000 || f.Certified != 3_000_000 || *held != before {
		t.Errorf("behind the certificate: %+v; the fence that a sink holds: %+v", f, held)
	}
	if err := w.s.CheckNext(certify); !errors.As(err, new(*FenceError)) || !strings.Contains(err.Error(), "6 that") {
		t.Errorf("another certificate: %v", err)
	}
	if err := w.snapshot(t, 1<<20); err != nil {
		t.Fatal(err)
	}
	sameState(t, "restored", w.l.fold(t), w.l.restored(t))
	w.must(t, &Control{Fence: &FenceOrder{ID: "f", Undo: true}}, frame(page(w.s, "a", 2, false)), &Beat{},
		markAt(w.s.Seq), &Control{Fence: &FenceOrder{ID: "g"}})
	if f := w.s.Fence; f == nil || f.Behind != 0 || f.Certified != 0 {
		t.Errorf("the next fence: %+v", f)
	}
}

func TestWhatIsOpenForbidsAFence(t *testing.T) {
	order := &Control{Fence: &FenceOrder{ID: "f"}}
	for name, spoil := range map[string]func(*State){
		"no stream": func(s *State) { s.Streams = nil },
		"no mark":   func(s *State) { delete(s.Marks, SinkBigtable) },
		"backfill":  func(s *State) { s.Backfill = FromScan },
		"copy":      func(s *State) { s.Copy = &CopyState{Copy: Copy{ID: "c", Parts: 1}} },
		"accepting": func(s *State) { s.Accepting = &Accept{} },
		"switched":  func(s *State) { s.Switched = &Switch{} },
		"resync":    func(s *State) { s.Resync = &PendingResync{} },
	} {
		w := owned(t, seen("a")...)
		w.must(t, markAt(1))
		if err := w.s.CheckNext(order); err != nil {
			t.Fatal(err)
		}
		spoil(w.s)
		refused := (*FenceError)(nil)
		if err := w.s.CheckNext(order); !errors.As(err, &refused) || !strings.Contains(err.Error(), "cannot be fenced") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := owned(t, seen("a")...)
	w.must(t, markAt(1))
	if err := w.s.CheckNext(&Control{Fence: &FenceOrder{}}); err == nil {
		t.Error("a fence without an id is taken")
	}
}

// fence is what a cutover does: it raises a fence, or takes it away.
func (p *process) fence() {
	wr := &writer{l: p.l, s: p.l.restored(p)}
	b := &FenceOrder{ID: fmt.Sprint("cutover-", p.w.orders)}
	if wr.s.Fence != nil {
		b.ID, b.Undo = wr.s.Fence.ID, true
	}
	if err := wr.s.CheckNext(&Control{Fence: b}); err == nil {
		p.w.orders++
		wr.must(p, &Control{Fence: b, At: p.w.now})
	} else if b.Undo {
		p.Fatal(err)
	}
}

// refusedByFence checks that operators are told that the table is fenced.
func (p *process) refusedByFence(s *State) {
	refused := (*FenceError)(nil)
	if err := s.CheckNext(&Control{Resync: &ResyncOrder{ID: "behind a fence"}}); !errors.As(err, &refused) {
		p.Fatal(err)
	}
}

// TestUnappliedIsThatOfTheSinkFarthestBehind: with and without a fence, behind which only others
// have something to do.
func TestUnappliedIsThatOfTheSinkFarthestBehind(t *testing.T) {
	for name, c := range map[string]struct {
		bigtable, archive uint64 // marks
		fenced            bool   // at entry 8, whose newest entry with changes before it is 7; the log's is 10
		sink              string
		entries           uint64
	}{
		"all applied":            {10, 10, false, "", 0},
		"applied past the end":   {12, 11, false, "", 0},
		"one behind":             {9, 10, false, SinkBigtable, 1},
		"the other behind":       {10, 9, false, "archive", 1},
		"both, the other more":   {9, 5, false, "archive", 5},
		"both, more":             {4, 5, false, SinkBigtable, 6},
		"at the fence":           {7, 10, true, "", 0},
		"not at the fence":       {5, 10, true, SinkBigtable, 2},
		"the other, as far":      {7, 7, true, "archive", 3},
		"behind, the other more": {6, 3, true, "archive", 7},
	} {
		s := NewState()
		s.LastFrame = 10
		s.Marks = map[string]Mark{SinkBigtable: {Seq: c.bigtable}, "archive": {Seq: c.archive}}
		if c.fenced {
			s.Fence = &Fence{ID: "f", Seq: 8, Last: 7}
		}
		if sink, n := s.Unapplied(); sink != c.sink || n != c.entries {
			t.Errorf("%s: %q has %d", name, sink, n)
		}
		if got := s.AllApplied(); got != (c.entries == 0) {
			t.Errorf("%s: all applied: %t", name, got)
		}
	}
}

// TestNothingIsAppliedWithoutASink: a log that holds changes is not applied before a sink has
// begun.
func TestNothingIsAppliedWithoutASink(t *testing.T) {
	s := NewState()
	if !s.AllApplied() {
		t.Error("an empty log is not applied")
	}
	if s.LastFrame = 3; s.AllApplied() {
		t.Error("changes are applied without a sink")
	}
}

// TestOrdersOfAFenceThatMayBeRepeated: an undo where there is none, and the same fence whatever is
// open by then.
func TestOrdersOfAFenceThatMayBeRepeated(t *testing.T) {
	w := fenced(t)
	w.s.Resync = &PendingResync{} // as by an older build
	if err := w.s.CheckNext(&Control{Fence: &FenceOrder{ID: "f"}}); err != nil {
		t.Errorf("the same fence: %v", err)
	}
	started := owned(t, seen("a")...)
	if err := started.s.CheckNext(&Control{Fence: &FenceOrder{ID: "f", Undo: true}}); err != nil {
		t.Errorf("an undo of a table that no sink has marked: %v", err)
	}
	started.must(t, markAt(1))
	for _, undo := range []bool{true, false} {
		err := started.s.CheckNext(&Control{Fence: &FenceOrder{Undo: undo}})
		if err == nil || !strings.Contains(err.Error(), "no id") {
			t.Errorf("without an id, undo %v: %v", undo, err)
		}
	}
	started.s.Date = 7_000
	started.must(t, &Control{Fence: &FenceOrder{ID: "f"}, At: 5_000})
	if at := started.s.Fence.At; at != 7_000 {
		t.Errorf("by a clock that is behind the service's: fenced at %d", at)
	}
}

// TestBeatProvesNoMoreThanIsRead: heartbeats came out of every shard, and one of them is not read
// so far.
func TestBeatProvesNoMoreThanIsRead(t *testing.T) {
	w := owned(t, seen("a")...)
	w.must(t, markAt(1), frame(page(w.s, "a", 3, false)))
	read := w.s.ReadWatermark()
	if read == 0 {
		t.Fatal("nothing is read")
	}
	for proven, want := range map[change.Millis]change.Millis{read - 1: read - 1, read: read, read + 5: read} {
		w.must(t, &Beat{Proven: proven, Assumed: 2})
		if p := w.s.Proof; p.Read != want || p.Assumed != 2 {
			t.Errorf("a beat that proves %d of %d: %+v", proven, read, p)
		}
	}
}
