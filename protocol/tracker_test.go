package protocol

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

func at(seq uint64) checkpoint.Mark {
	return checkpoint.Mark{Seq: seq, Hash: checkpoint.Hash{byte(seq)}}
}

// handedOut adds an entry all of whose changes are with the sink.
func handedOut(p *MarkTracker, seq uint64, changes int) *TrackedEntry {
	e := p.Add(at(seq), changes, nil)
	e.Ack(1)
	return e
}

func TestMarkStopsBeforeTheFirstOpenEntry(t *testing.T) {
	p := NewMarkTracker(at(10))
	first, second, third := handedOut(p, 11, 2), handedOut(p, 12, 1), handedOut(p, 14, 1)
	third.Ack(1)
	second.Ack(1)
	if got := p.Mark(); got != at(10) {
		t.Fatalf("mark %d while entry 11 is open", got.Seq)
	}
	first.Ack(1)
	if got := p.Mark(); got != at(10) {
		t.Fatalf("mark %d while a change of entry 11 is open", got.Seq)
	}
	first.Ack(1)
	if got := p.Mark(); got != at(14) {
		t.Fatalf("mark %d, want 14: everything is durable", got.Seq)
	}
}

func TestMarkWaitsForAnEntryThatIsBeingHandedOut(t *testing.T) {
	p := NewMarkTracker(at(1))
	e := p.Add(at(2), 2, nil)
	e.Ack(1)
	e.Ack(1) // both changes are durable, but the entry may hold more that is not unpacked yet
	if got := p.Mark(); got != at(1) {
		t.Fatalf("mark %d before the entry was handed out", got.Seq)
	}
	e.Ack(1)
	if got := p.Mark(); got != at(2) {
		t.Fatalf("mark %d, want 2", got.Seq)
	}
}

func TestMarksDoNotFeedThemselves(t *testing.T) {
	p := NewMarkTracker(at(1))
	handedOut(p, 2, 1).Ack(1)
	if m, changed := p.Acked(); m != at(2) || changed != 2 {
		t.Fatalf("passed %d, changes up to %d; want 2 and 2", m.Seq, changed)
	}
	handedOut(p, 3, 0) // the mark that this became, a beat
	handedOut(p, 4, 0)
	if m, changed := p.Acked(); m != at(4) || changed != 2 {
		t.Fatalf("passed %d, changes up to %d; want 4 and still 2", m.Seq, changed)
	}
}

func TestAnotherPassStartsAtTheMarkAndNotBehindIt(t *testing.T) {
	p := NewMarkTracker(at(1))
	released := 0
	handedOut(p, 2, 1).Ack(1)
	p.Add(at(3), 1, func() { released++ })
	done := p.Add(at(4), 1, func() { released++ })
	done.Ack(2)
	p.Abandon()
	if released != 2 {
		t.Errorf("memory of %d entries was given back, want both, once", released)
	}
	next := p.Next()
	if m, changed := next.Acked(); m != at(2) || changed != 2 {
		t.Errorf("the next pass starts at %d with changes up to %d, want 2 and 2", m.Seq, changed)
	}
}

func TestMarkIsTheContiguousPrefixWhateverTheOrder(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	p := NewMarkTracker(at(0))
	open := map[uint64]int{}
	var entries []*TrackedEntry
	var last uint64
	for step := range 2000 {
		if rnd.IntN(3) == 0 && step < 1500 {
			last += 1 + rnd.Uint64N(3)
			n := rnd.IntN(4)
			open[last] = n
			e := handedOut(p, last, n)
			for range n {
				entries = append(entries, e)
			}
		} else if len(entries) > 0 {
			i := rnd.IntN(len(entries))
			e := entries[i]
			entries[i] = entries[len(entries)-1]
			entries = entries[:len(entries)-1]
			open[e.At.Seq]--
			e.Ack(1)
		}
		mark := p.Mark().Seq
		for seq, n := range open {
			if n > 0 && seq <= mark {
				t.Fatalf("step %d: the mark is %d, entry %d has %d open changes", step, mark, seq, n)
			}
		}
	}
}

// TestBacklogCountsChangesThatAreNotDurable: a copy slows down by it.
func TestBacklogCountsChangesThatAreNotDurable(t *testing.T) {
	acks := NewMarkTracker(checkpoint.Mark{})
	first := acks.Add(checkpoint.Mark{Seq: 1}, 2, nil)
	first.since = time.Now().Add(-time.Minute)
	second := acks.Add(checkpoint.Mark{Seq: 2}, 3, nil)
	for _, e := range []*TrackedEntry{first, second} {
		e.Ack(1) // handed out
	}
	if n, _ := acks.Backlog(time.Now()); n != 5 {
		t.Errorf("backlog of %d changes, not 5", n)
	}
	if _, oldest := acks.Backlog(time.Now()); oldest < time.Minute {
		t.Errorf("the oldest change has waited for %v, not a minute", oldest)
	}
	second.Ack(3) // behind an open entry
	first.Ack(1)
	if n, _ := acks.Backlog(time.Now()); n != 1 {
		t.Errorf("backlog of %d changes, not 1", n)
	}
	first.Ack(1)
	if n, _ := acks.Backlog(time.Now()); n != 0 {
		t.Errorf("backlog of %d changes, not 0", n)
	}
}

// TestPendingIsKnownBehindTheEndOfTheFold: the fold with which a life begins counts the changes of
// the log as a whole, and not those before its mark.
func TestPendingIsKnownBehindTheEndOfTheFold(t *testing.T) {
	want := func(p *MarkTracker, changes, n uint64, known bool) {
		t.Helper()
		if got, ok := p.Behind(changes); ok != known || known && got != n {
			t.Errorf("%d of %d changes are behind mark %d, known %v; want %d, %v", got, changes, p.Mark().Seq, ok, n, known)
		}
	}
	state := &checkpoint.State{Seq: 20, LastFrame: 18, Changes: 100}
	p := NewMarkTracker(at(18)).CountFrom(state) // everything was applied before
	want(p, 100, 0, true)
	e := handedOut(p, 21, 7)
	want(p, 107, 7, true)
	e.Ack(7)
	want(p, 107, 0, true)
	want(p, 110, 3, true) // entries that the sink has not read yet

	p = NewMarkTracker(at(10)).CountFrom(state)
	want(p, 100, 0, false)
	first, last, later := handedOut(p, 11, 4), handedOut(p, 18, 2), handedOut(p, 21, 5)
	first.Ack(4)
	want(p, 105, 0, false)
	last.Ack(2) // the mark is still before the end of the fold
	want(p, 105, 0, false)
	handedOut(p, 22, 3) // open
	p = p.Next()
	later.Ack(5)
	want(p, 108, 0, false)
	handedOut(p, 19, 0) // foreign or a beat
	handedOut(p, 20, 0)
	want(p, 108, 8, true)
	handedOut(p, 21, 5).Ack(5)
	want(p, 108, 3, true)
	want(p.Next(), 108, 3, true)
}
