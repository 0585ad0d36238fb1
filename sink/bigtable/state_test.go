package bigtable

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func firstState() *State {
	return &State{Life: 1, Lead: 10 * time.Minute, Identity: Identity{
		Pipeline: "shop", Table: "Products", TableID: "id-1", StreamARN: "arn:…/stream/1",
		LogCreated: present, MappingHash: "abc",
	}}
}

func TestStateIsStoredAndComparedBeforeItChanges(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		if _, err := c.LoadState(t.Context(), "shop", "Products"); !errors.Is(err, ErrNoState) {
			t.Fatalf("load: %v", err)
		}
		s := firstState()
		if err := c.CreateState(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		stale := *s
		issued := *s
		issued.Issued = true
		if err := c.CompareAndSet(t.Context(), s, &issued); err != nil {
			t.Fatal(err)
		}
		stale.Life = 2
		if err := c.CompareAndSet(t.Context(), s, &stale); !errors.Is(err, ErrStateChanged) {
			t.Errorf("set over a newer state: %v", err)
		}
		got, err := c.LoadState(t.Context(), "shop", "Products")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&issued, got, cmpopts.IgnoreUnexported(State{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestSecondFirstStartFindsTheRow(t *testing.T) {
	c, _ := rig(t)
	if err := c.CreateState(t.Context(), firstState()); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateState(t.Context(), firstState()); err != nil {
		t.Errorf("repeating the same step: %v", err)
	}
	other := firstState()
	other.Identity.LogCreated = present.Add(time.Second)
	if err := c.CreateState(t.Context(), other); !errors.Is(err, ErrStateExists) {
		t.Errorf("another log's row: %v", err)
	}
}

func TestLostReplyToAStateChangeIsNotAConflict(t *testing.T) {
	c, f := rig(t)
	f.fates(func(n int) fate { return []fate{lose, pass}[n%2] })
	s := firstState()
	if err := c.CreateState(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	next := *s
	next.Issued = true
	if err := c.CompareAndSet(t.Context(), s, &next); err != nil {
		t.Fatal(err)
	}
}

func TestManyReserveAndNoneLowers(t *testing.T) {
	c, _ := rig(t)
	s := firstState()
	if err := c.CreateState(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			lead := time.Duration(11+i) * time.Minute
			got, err := c.Reserve(t.Context(), s, lead)
			if err != nil || got.Lead < lead {
				t.Errorf("reserve %v: %+v, %v", lead, got, err)
			}
		})
	}
	all.Wait()
	got, err := c.LoadState(t.Context(), "shop", "Products")
	if err != nil || got.Lead != 18*time.Minute {
		t.Errorf("lead %v, %v; want the highest that was asked for", got.Lead, err)
	}
}

func TestReserveStopsWhenAnotherLifeBegan(t *testing.T) {
	c, _ := rig(t)
	s := firstState()
	if err := c.CreateState(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	next := *s
	next.Life = 2
	if err := c.CompareAndSet(t.Context(), s, &next); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reserve(t.Context(), s, time.Hour); !errors.Is(err, ErrStateChanged) {
		t.Errorf("reserve for a life that is over: %v", err)
	}
}

func TestNewerStateFormatIsRefused(t *testing.T) {
	var newer *NewerFormatError
	if _, err := decodeState([]byte(`{"format":2}`)); !errors.As(err, &newer) || newer.Have != 2 {
		t.Errorf("decode: %v", err)
	}
}

// TestOwnerThatHasNotSeenTheFenceKeepsIt: without it, what the source holds would be written over
// what the application has written since.
func TestOwnerThatHasNotSeenTheFenceKeepsIt(t *testing.T) {
	c, _ := rig(t)
	s := firstState()
	if err := c.CreateState(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	next := *s
	next.Fenced = &Fenced{ID: "f", Time: present}
	if err := c.CompareAndSet(t.Context(), s, &next); err != nil {
		t.Fatal(err)
	}
	got, err := c.Reserve(t.Context(), s, 2*next.Lead) // an owner that has not seen the fence
	if err != nil || got.Format != StateFormat || got.Fenced == nil || got.Fenced.ID != "f" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRowIsRemovedAsItWasLoaded(t *testing.T) {
	c, f := rig(t)
	s := firstState()
	if err := c.CreateState(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	next := *s
	next.Issued = true
	if err := c.CompareAndSet(t.Context(), s, &next); err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveState(t.Context(), s); !errors.Is(err, ErrStateChanged) {
		t.Errorf("a row that has changed: %v", err)
	}
	f.fates(func(n int) fate { return []fate{lose, pass}[n%2] })
	if err := c.RemoveState(t.Context(), &next); err != nil {
		t.Error(err)
	}
	if _, err := c.LoadState(t.Context(), "shop", "Products"); !errors.Is(err, ErrNoState) {
		t.Errorf("after it was removed: %v", err)
	}
}

// TestFencedTableIsFoundAmongRowsOfOthers: a row of another target hides no fence, whatever build
// has written it.
func TestFencedTableIsFoundAmongRowsOfOthers(t *testing.T) {
	c, _ := rig(t)
	store := func(pipeline, target string, format int, fence *Fenced) {
		t.Helper()
		s := &State{Format: format, Identity: Identity{Pipeline: pipeline, Table: "Products", Target: c.TargetName(target)},
			Fenced: fence}
		if won, err := c.storeIf(t.Context(), s, columnFilter(stateQualifier), false); !won || err != nil {
			t.Fatal(won, err)
		}
	}
	store("newer", "elsewhere", StateFormat+1, &Fenced{ID: "other"})
	store("running", "products", StateFormat, nil)
	if s, err := c.FencedTable(t.Context(), "products"); s != nil || err != nil {
		t.Errorf("before: %+v, %v", s, err)
	}
	store("shop", "products", StateFormat, &Fenced{ID: "f", Time: present})
	store("zoo", "products", StateFormat, nil)
	if s, err := c.FencedTable(t.Context(), "products"); err != nil || s == nil || s.Fenced.ID != "f" {
		t.Errorf("%+v, %v", s, err)
	}
	store("zzz", "products", StateFormat+1, nil) // nobody knows what it says
	newer := (*NewerFormatError)(nil)
	if _, err := c.FencedTable(t.Context(), "products"); !errors.As(err, &newer) {
		t.Errorf("with a row of a newer format: %v", err)
	}
}
