package source

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

func shardID(n int) string { return fmt.Sprintf("shardId-%020d-%08x", 1_700_000_000_000+n, n) }

// Every page may be throttled several times; all shards must be found, within the stream's rate.
func TestManyShardsOverPagesWithThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		for i := range 250 {
			w.shard(shardID(i), "", 0)
		}
		n := 0
		w.script = func(c wireCall) *wireReply {
			if n++; n%3 != 0 {
				return refuse("ThrottlingException", "Rate exceeded")
			}
			return nil
		}
		l, err := open(t, w).List(t.Context(), "arn")
		if err != nil || !l.Complete || len(l.Shards) != 250 {
			t.Fatalf("%d shards, complete %v, %v", len(l.Shards), l.Complete, err)
		}
		if n != 9 {
			t.Fatalf("%d calls", n)
		}
		if l.Started == 0 || l.Started > change.MillisOf(w.calls[0].at) {
			t.Fatalf("started %d", l.Started)
		}
	})
}

func TestListingsOfAStreamShareItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.page = 1
		for i := range 40 {
			w.shard(shardID(i), "", 0)
		}
		s := open(t, w)
		done := make(chan error)
		for range 2 {
			go func() { _, err := s.List(t.Context(), "arn"); done <- err }()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		for i := 10; i < len(w.calls); i++ {
			if d := w.calls[i].at.Sub(w.calls[i-10].at); d < time.Second {
				t.Fatalf("eleven calls in %v", d)
			}
		}
	})
}

func TestRepeatedCursorEndsTheListing(t *testing.T) {
	w := newWire()
	w.script = func(wireCall) *wireReply {
		return &wireReply{body: `{"StreamDescription":{"StreamStatus":"ENABLED","Shards":[{"ShardId":"a"}],` +
			`"LastEvaluatedShardId":"a"}}`}
	}
	l, err := open(t, w).List(t.Context(), "arn")
	if !errors.Is(err, ErrRepeatedCursor) || l.Complete {
		t.Fatalf("complete %v, %v", l.Complete, err)
	}
	if len(l.Shards) != 1 {
		t.Fatalf("%d shards", len(l.Shards))
	}
}

// What the first pages said is usable although a later page fails.
func TestPartOfAListingIsUsable(t *testing.T) {
	w := newWire()
	w.page = 2
	for i := range 5 {
		w.shard(shardID(i), "", 0)
	}
	n := 0
	w.script = func(wireCall) *wireReply {
		if n++; n == 3 {
			return refuse("AccessDeniedException", "no")
		}
		return nil
	}
	l, err := open(t, w).List(t.Context(), "arn")
	if Classify(err) != failure.Denied || l.Complete || len(l.Shards) != 4 {
		t.Fatalf("%d shards, complete %v, %v", len(l.Shards), l.Complete, err)
	}
}

func TestInconsistentListingIsRepaired(t *testing.T) {
	l := Listing{Shards: []Shard{
		{ID: "child", Parent: "parent"},           // the parent still looks open
		{ID: "orphan", Parent: "trimmed"},         // the parent is not listed
		{ID: "parent", Parent: "grand"},           // an older page
		{ID: "grand", Ending: "9"}, {ID: "grand"}, // listed twice
		{ID: "late"}, {ID: "late", Ending: "5"}, {ID: "x"}, // ended between two pages
	}}
	l.repair()
	want := []Shard{
		{ID: "child", Parent: "parent", Leaf: true},
		{ID: "orphan", Parent: "trimmed", Leaf: true, Orphan: true},
		{ID: "parent", Parent: "grand", Closed: true},
		{ID: "grand", Ending: "9", Closed: true},
		{ID: "late", Ending: "5", Closed: true, Leaf: true},
		{ID: "x", Leaf: true},
	}
	if diff := cmp.Diff(want, l.Shards); diff != "" {
		t.Fatal(diff)
	}
}

func TestChildrenAppearSecondsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 3).closed = true
		for _, id := range []string{"b", "c"} {
			w.shard(id, "a", 1).hidden = time.Now().Add(5 * time.Second)
		}
		s := open(t, w)
		got, err := s.Children(t.Context(), "arn", "a")
		if err != nil || len(got) != 2 || got[0].Parent != "a" || got[0].Orphan {
			t.Fatalf("%+v, %v", got, err)
		}
		r := s.NewReader(start(got[0].ID, change.Position{}))
		defer r.Close()
		p := next(t, r)
		defer p.Release()
		if len(p.Records) != 1 {
			t.Fatalf("%d records of the child", len(p.Records))
		}
	})
}

// DynamoDB Local ignores the filter, others refuse it: the children are found all the same, over
// all pages.
func TestServersWithoutChildFilter(t *testing.T) {
	for _, refused := range []bool{true, false} {
		w := newWire()
		w.noFilter, w.page = true, 2
		w.shard(shardID(0), "", 0)
		for i := 1; i < 7; i++ {
			w.shard(shardID(i), shardID(i/3), 0)
		}
		w.script = func(c wireCall) *wireReply {
			if refused && c.kind != "" {
				return refuse("ValidationException", "Unknown parameter ShardFilter")
			}
			return nil
		}
		got, err := open(t, w).Children(t.Context(), "arn", shardID(1))
		if err != nil || len(got) != 3 || got[0].ID != shardID(3) {
			t.Fatalf("refused %v: %+v, %v", refused, got, err)
		}
	}
}

func TestDisabledStreamHasNoMoreChildren(t *testing.T) {
	w := newWire()
	w.status = "DISABLED"
	w.shard("a", "", 0)
	got, err := open(t, w).Children(t.Context(), "arn", "a")
	if err != nil || len(got) != 0 || len(w.calls) != 1 {
		t.Fatalf("%+v, %v after %d calls", got, err, len(w.calls))
	}
}

func TestCreationTimeOfAShard(t *testing.T) {
	for id, want := range map[string]int64{
		"shardId-00000001700000000000-0a1b2c3d": 1_700_000_000_000,
		"shardId-00000000000000000001-0a1b2c3d": 0,
		"shardId-":                              0, "x": 0, "": 0,
	} {
		if got := (Shard{ID: id}).Created(); got != change.Millis(want) {
			t.Errorf("%s: %d", id, got)
		}
	}
}

// The SDK's retries come from a quota that all calls of a client share: one bad stream would use it
// up.
func TestOneStreamsThrottlesLeaveRetriesToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("a", "", 0)
		n := 0
		w.script = func(wireCall) *wireReply {
			if n++; n%9 != 0 {
				return refuse("ThrottlingException", "Rate exceeded")
			}
			return nil
		}
		s := open(t, w)
		for i := range 40 {
			if _, err := s.List(t.Context(), "arn"); err != nil {
				t.Fatalf("listing %d: %v", i, err)
			}
		}
	})
}
