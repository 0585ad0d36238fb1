package checkpoint

import (
	"errors"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// Rule 5: the first change of each shard is above what a copy or a resync writes by the floor
// alone, whatever way led into the life and to the shard. A floor may be ahead of the time by as
// much as versions were, ten minutes at least, and until then copies write at it.
func TestFirstChangeOfEachShardIsAboveWhatCopiesWrite(t *testing.T) {
	const floor, t0 = 900_000_000, 700_000_000
	begun := func(start *Start, more ...any) *writer {
		w, err := claim(t, new(memLog), NewState(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		start.Stream, start.Date, start.Floor = "arn", t0, floor
		w.must(t, append([]any{start}, more...)...)
		return w
	}
	disabled := &Graph{Stream: "arn", Date: t0 + 1000, Complete: true, Disabled: true,
		Shards: []ShardSeen{{ID: "a", Closed: true}}}
	later := &Graph{Stream: "arn", Date: t0 + 1, Shards: seen("a", "b")}
	second := &Start{Stream: "arn-2", Date: t0 + 5000, Shards: seen("b")}
	oneShard := func() *Start { return &Start{Shards: seen("a")} }
	recovered := func() *Start { return &Start{Shards: seen("a"), Recover: true, After: t0} }
	lost := func() *Graph {
		return &Graph{Stream: "arn", Date: t0 + 30*hour, Complete: true, Shards: seen("a", "c<b"), Gone: []string{"b"}}
	}
	for name, x := range map[string]struct {
		w     *writer
		shard string
	}{
		"an adopted target":                         {begun(oneShard()), "a"},
		"an adopted target, copied":                 {begun(&Start{Shards: seen("a"), Backfill: FromScan, At: t0 - 1}), "a"},
		"a shard that is listed later":              {begun(oneShard(), later), "b"},
		"a child of a shard that was lost":          {begun(oneShard(), lost()), "c"},
		"a recovery":                                {begun(recovered()), "a"},
		"a recovery, a child of a lost shard":       {begun(recovered(), lost()), "c"},
		"the next stream":                           {begun(oneShard(), disabled, endOf(), second), "b"},
		"the next stream of a life after a recover": {begun(recovered(), disabled, endOf(), second), "b"},
	} {
		for way, s := range map[string]*State{"": x.w.s, ", restored": restoredFrom(t, x.w)} {
			sh := s.Shards[x.shard]
			clock := change.Clock(sh.Clock)
			v := clock.NextIn(s.LifeOf(sh.Stream), t0+1000)
			if copied := s.Floor() + 1; v <= copied {
				t.Errorf("%s%s: the first change of shard %s has version %d, a copied item %d", name, way, x.shard, v, copied)
			}
		}
	}
}

// endOf ends shard "a" of stream "arn" without a record.
func endOf() *Gap {
	return &Gap{Feed: change.Feed{Stream: "arn", Shard: "a"}, Since: 1, Until: 2, Found: 3, Ends: true, Accepted: true}
}

// restoredFrom returns the state of a snapshot of the log.
func restoredFrom(t *testing.T, w *writer) *State {
	t.Helper()
	if err := w.snapshot(t, 1<<20); err != nil {
		t.Fatal(err)
	}
	return w.l.restored(t)
}

// The fold refuses what takes the room away: pages whose first version a copy may have, and copies
// that are not above the floor.
func TestVersionsThatACopyMayHaveAreRefused(t *testing.T) {
	const floor, t0 = 900_000_000, 700_000_000
	w, err := claim(t, new(memLog), NewState(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	w.must(t, &Start{Stream: "arn", Date: t0, Floor: floor, Shards: seen("a")})
	for clock, refused := range map[change.Version]bool{floor - 1: true, floor: true, floor + 1: false} {
		w.s.Shards["a"].Clock = clock // as a snapshot might have it
		if err := w.s.CheckNext(frame(page(w.s, "a", 1, false))); errors.As(err, new(*CorruptError)) != refused {
			t.Errorf("a page whose clock begins at floor %+d: %v", clock-floor, err)
		}
		if err := w.s.CheckNext(frame(page(w.s, "a", 0, true))); err != nil {
			t.Errorf("a page without records, clock at floor %+d: %v", clock-floor, err)
		}
	}
	for version, refused := range map[change.Version]bool{0: false, floor: true, floor + 1: false} {
		err := w.s.CheckNext(&Copy{ID: "c", Why: CopyBackfill, From: FromExport, Parts: 1, Version: version})
		if errors.As(err, new(*CorruptError)) != refused {
			t.Errorf("a copy at version %d: %v", version, err)
		}
	}
}
