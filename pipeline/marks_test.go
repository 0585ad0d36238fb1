package pipeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

func at(seq uint64) checkpoint.Mark {
	return checkpoint.Mark{Seq: seq, Hash: checkpoint.Hash{byte(seq)}}
}

// handedOut adds an entry all of whose changes are with the sink.
func handedOut(p *prefix, seq uint64, changes int) *pending {
	e := p.add(at(seq), changes, nil)
	e.done(1)
	return e
}

func TestMarkStopsBeforeTheFirstOpenEntry(t *testing.T) {
	p := newPrefix(at(10))
	first, second, third := handedOut(p, 11, 2), handedOut(p, 12, 1), handedOut(p, 14, 1)
	third.done(1)
	second.done(1)
	if got := p.at(); got != at(10) {
		t.Fatalf("mark %d while entry 11 is open", got.Seq)
	}
	first.done(1)
	if got := p.at(); got != at(10) {
		t.Fatalf("mark %d while a change of entry 11 is open", got.Seq)
	}
	first.done(1)
	if got := p.at(); got != at(14) {
		t.Fatalf("mark %d, want 14: everything is durable", got.Seq)
	}
}

func TestMarkWaitsForAnEntryThatIsBeingHandedOut(t *testing.T) {
	p := newPrefix(at(1))
	e := p.add(at(2), 2, nil)
	e.done(1)
	e.done(1) // both changes are durable, but the entry may hold more that nobody has unpacked
	if got := p.at(); got != at(1) {
		t.Fatalf("mark %d before the entry was handed out", got.Seq)
	}
	e.done(1)
	if got := p.at(); got != at(2) {
		t.Fatalf("mark %d, want 2", got.Seq)
	}
}

func TestMarksDoNotFeedThemselves(t *testing.T) {
	p := newPrefix(at(1))
	handedOut(p, 2, 1).done(1)
	if m, changed := p.passed(); m != at(2) || changed != 2 {
		t.Fatalf("passed %d, changes up to %d; want 2 and 2", m.Seq, changed)
	}
	handedOut(p, 3, 0) // the mark that this became, a beat
	handedOut(p, 4, 0)
	if m, changed := p.passed(); m != at(4) || changed != 2 {
		t.Fatalf("passed %d, changes up to %d; want 4 and still 2", m.Seq, changed)
	}
}

func TestAnotherPassStartsAtTheMarkAndNotBehindIt(t *testing.T) {
	p := newPrefix(at(1))
	released := 0
	handedOut(p, 2, 1).done(1)
	p.add(at(3), 1, func() { released++ })
	done := p.add(at(4), 1, func() { released++ })
	done.done(2)
	p.abandon()
	if released != 2 {
		t.Errorf("memory of %d entries was given back, want both, once", released)
	}
	next := p.again()
	if m, changed := next.passed(); m != at(2) || changed != 2 {
		t.Errorf("the next pass starts at %d with changes up to %d, want 2 and 2", m.Seq, changed)
	}
}

func TestMarkIsTheContiguousPrefixWhateverTheOrder(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	p := newPrefix(at(0))
	open := map[uint64]int{}
	var entries []*pending
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
			e.done(1)
		}
		mark := p.at().Seq
		for seq, n := range open {
			if n > 0 && seq <= mark {
				t.Fatalf("step %d: the mark is %d, entry %d has %d open changes", step, mark, seq, n)
			}
		}
	}
}

func TestSinkThatStandsStillTakesNobodysTurn(t *testing.T) {
	b := newBudget(100)
	stalled, other := b.share(), b.share()
	ctx := t.Context()
	take := func(s *share, n int) func() {
		t.Helper()
		release, err := s.take(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	take(stalled, 60)
	take(stalled, 40) // never given back
	release := take(other, 30)
	second := make(chan func())
	go func() { second <- take(other, 30) }() // waits: there is no room, and one is in hand
	release()
	select {
	case release = <-second:
	case <-time.After(10 * time.Second):
		t.Fatal("the other sink waits although it has nothing in hand")
	}
	release()
	waiting, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := stalled.take(waiting, 1)
		ended <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); len(waitingOf(b)) == 0; {
		select {
		case err := <-ended:
			t.Fatalf("took more than there is: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody waits")
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("took more than there is: %v", err)
	}
	if b.used != 100 || len(b.waiting) != 0 {
		t.Errorf("%d bytes in use and %d waiting, want 100 and 0", b.used, len(b.waiting))
	}
}

func waitingOf(b *budget) []*share {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}
