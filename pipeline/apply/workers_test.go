package apply

import (
	"context"
	"testing"
)

// taken acquires workers of a table until there are no more, and returns what releases each.
func taken(t *testing.T, table *tableWorkers) (all []func()) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		release, err := table.acquire(ended) // one that is free is taken all the same
		if err != nil {
			return all
		}
		all = append(all, release)
	}
}

func TestWorkersAreDividedBetweenTheTablesThatAreCarried(t *testing.T) {
	w := &workers{half: 100}
	a, leaveA := w.join()
	if all := taken(t, a); len(all) != 200 {
		t.Errorf("one table has %d workers, want all 200", len(all))
	} else {
		for _, release := range all {
			release()
		}
	}
	b, leaveB := w.join()
	first, second := taken(t, a), taken(t, b)
	if len(first) != 150 || len(second) != 50 {
		t.Errorf("two tables have %d and %d workers, want 150 and the part of 50", len(first), len(second))
	}
	got := make(chan error)
	go func() {
		_, err := b.acquire(t.Context())
		got <- err
	}()
	for _, release := range first {
		release()
	}
	leaveA()
	if err := <-got; err != nil {
		t.Error(err)
	}
	if all := taken(t, b); len(second)+1+len(all) != 200 {
		t.Errorf("the table that is left has %d workers, want all 200", len(second)+1+len(all))
	}
	leaveB()
}

func TestManyTablesHaveAFewWorkersEach(t *testing.T) {
	w := &workers{half: 16}
	var all []*tableWorkers
	for range 10 {
		table, leave := w.join()
		defer leave()
		all = append(all, table)
	}
	for i, table := range all {
		want := leastWorkers
		if i == 0 {
			want += 16
		}
		if n := len(taken(t, table)); n != want {
			t.Errorf("table %d has %d workers, want %d", i, n, want)
		}
	}
}
