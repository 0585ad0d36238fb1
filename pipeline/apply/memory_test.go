package apply

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestSinkThatStandsStillTakesNobodysTurn(t *testing.T) {
	b := NewChangeMemory(100)
	stalled, other := b.NewShare(), b.NewShare()
	ctx := t.Context()
	take := func(s *memoryShare, n int) func() {
		t.Helper()
		release, err := s.Acquire(ctx, n)
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
	case <-time.After(time.Minute):
		t.Fatal("the other sink waits although it has nothing in hand")
	}
	release()
	waiting, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := stalled.Acquire(waiting, 1)
		ended <- err
	}()
	for deadline := time.Now().Add(time.Minute); len(waitingOf(b)) == 0; {
		select {
		case err := <-ended:
			t.Fatalf("took more than there is: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing waits")
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

func waitingOf(b *ChangeMemory) []*memoryShare {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}
