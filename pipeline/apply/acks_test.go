package apply

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
func handedOut(p *ackTracker, seq uint64, changes int) *openEntry {
	e := p.add(at(seq), changes, nil)
	e.ack(1)
	return e
}

func TestMarkStopsBeforeTheFirstOpenEntry(t *testing.T) {
	p := newAckTracker(at(10))
	first, second, third := handedOut(p, 11, 2), handedOut(p, 12, 1), handedOut(p, 14, 1)
	third.ack(1)
	second.ack(1)
	if got := p.mark(); got != at(10) {
		t.Fatalf("mark %d while entry 11 is open", got.Seq)
	}
	first.ack(1)
	if got := p.mark(); got != at(10) {
		t.Fatalf("mark %d while a change of entry 11 is open", got.Seq)
	}
	first.ack(1)
	if got := p.mark(); got != at(14) {
		t.Fatalf("mark %d, want 14: everything is durable", got.Seq)
	}
}

func TestMarkWaitsForAnEntryThatIsBeingHandedOut(t *testing.T) {
	p := newAckTracker(at(1))
	e := p.add(at(2), 2, nil)
	e.ack(1)
	e.ack(1) // both changes are durable, but the entry may hold more that is not unpacked yet
	if got := p.mark(); got != at(1) {
		t.Fatalf("mark %d before the entry was handed out", got.Seq)
	}
	e.ack(1)
	if got := p.mark(); got != at(2) {
		t.Fatalf("mark %d, want 2", got.Seq)
	}
}

func TestMarksDoNotFeedThemselves(t *testing.T) {
	p := newAckTracker(at(1))
	handedOut(p, 2, 1).ack(1)
	if m, changed := p.acked(); m != at(2) || changed != 2 {
		t.Fatalf("passed %d, changes up to %d; want 2 and 2", m.Seq, changed)
	}
	handedOut(p, 3, 0) // the mark that this became, a beat
	handedOut(p, 4, 0)
	if m, changed := p.acked(); m != at(4) || changed != 2 {
		t.Fatalf("passed %d, changes up to %d; want 4 and still 2", m.Seq, changed)
	}
}

func TestAnotherPassStartsAtTheMarkAndNotBehindIt(t *testing.T) {
	p := newAckTracker(at(1))
	released := 0
	handedOut(p, 2, 1).ack(1)
	p.add(at(3), 1, func() { released++ })
	done := p.add(at(4), 1, func() { released++ })
	done.ack(2)
	p.abandon()
	if released != 2 {
		t.Errorf("memory of %d entries was given back, want both, once", released)
	}
	next := p.next()
	if m, changed := next.acked(); m != at(2) || changed != 2 {
		t.Errorf("the next pass starts at %d with changes up to %d, want 2 and 2", m.Seq, changed)
	}
}

func TestMarkIsTheContiguousPrefixWhateverTheOrder(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	p := newAckTracker(at(0))
	open := map[uint64]int{}
	var entries []*openEntry
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
			open[e.at.Seq]--
			e.ack(1)
		}
		mark := p.mark().Seq
		for seq, n := range open {
			if n > 0 && seq <= mark {
				t.Fatalf("step %d: the mark is %d, entry %d has %d open changes", step, mark, seq, n)
			}
		}
	}
}

// TestBacklogCountsChangesThatAreNotDurable: a copy slows down by it.
func TestBacklogCountsChangesThatAreNotDurable(t *testing.T) {
	acks := newAckTracker(checkpoint.Mark{})
	first := acks.add(checkpoint.Mark{Seq: 1}, 2, nil)
	first.since = time.Now().Add(-time.Minute)
	second := acks.add(checkpoint.Mark{Seq: 2}, 3, nil)
	for _, e := range []*openEntry{first, second} {
		e.ack(1) // handed out
	}
	if n, _ := acks.backlog(time.Now()); n != 5 {
		t.Errorf("backlog of %d changes, not 5", n)
	}
	if _, oldest := acks.backlog(time.Now()); oldest < time.Minute {
		t.Errorf("the oldest change has waited for %v, not a minute", oldest)
	}
	second.ack(3) // behind an open entry
	first.ack(1)
	if n, _ := acks.backlog(time.Now()); n != 1 {
		t.Errorf("backlog of %d changes, not 1", n)
	}
	first.ack(1)
	if n, _ := acks.backlog(time.Now()); n != 0 {
		t.Errorf("backlog of %d changes, not 0", n)
	}
}

// TestPendingIsKnownBehindTheEndOfTheFold: the fold with which a life begins counts the changes of the log as a whole,
// and not those before its mark.
func TestPendingIsKnownBehindTheEndOfTheFold(t *testing.T) {
	want := func(p *ackTracker, changes, n uint64, known bool) {
		t.Helper()
		if got, ok := p.behind(changes); ok != known || known && got != n {
			t.Errorf("%d of %d changes are behind mark %d, known %v; want %d, %v", got, changes, p.mark().Seq, ok, n, known)
		}
	}
	state := &checkpoint.State{Seq: 20, LastFrame: 18, Changes: 100}
	p := newAckTracker(at(18)).countFrom(state) // everything was applied before
	want(p, 100, 0, true)
	e := handedOut(p, 21, 7)
	want(p, 107, 7, true)
	e.ack(7)
	want(p, 107, 0, true)
	want(p, 110, 3, true) // entries that the sink has not read yet

	p = newAckTracker(at(10)).countFrom(state)
	want(p, 100, 0, false)
	first, last, later := handedOut(p, 11, 4), handedOut(p, 18, 2), handedOut(p, 21, 5)
	first.ack(4)
	want(p, 105, 0, false)
	last.ack(2) // the mark is still before the end of the fold
	want(p, 105, 0, false)
	handedOut(p, 22, 3) // open
	p = p.next()
	later.ack(5)
	want(p, 108, 0, false)
	handedOut(p, 19, 0) // foreign or a beat
	handedOut(p, 20, 0)
	want(p, 108, 8, true)
	handedOut(p, 21, 5).ack(5)
	want(p, 108, 3, true)
	want(p.next(), 108, 3, true)
}
