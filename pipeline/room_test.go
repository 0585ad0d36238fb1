package pipeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// Attack 86. A life that begins above a floor ahead of the time copies every item at one version,
// and the first change of each shard must be above it: a row that holds the item at this version
// skips the change for good. The shards have no record any more, so what changes first is the first
// of its shard.
func TestFirstChangeOfEachShardIsAppliedAboveAFloor(t *testing.T) {
	long(t, "3 s")
	const lead = 10 * time.Minute // of a row, at least
	for way, begin := range map[string]func(r *run, floor change.Version) error{
		"retired": func(r *run, floor change.Version) error {
			if _, err := r.sink.ClaimTarget(r.t.Context(), "shop", "orders"); err != nil {
				return err
			}
			as := bigtable.Retired{At: r.clock.Now(), Floor: floor}
			return r.sink.Retire(r.t.Context(), "shop", "orders", "Orders", as)
		},
		"adopted": func(r *run, floor change.Version) error {
			return r.sink.AdoptTarget(r.t.Context(), "shop", "orders", "", floor)
		},
	} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t)
			w.patient()
			w.createTable("Orders")
			for i := range 12 {
				w.put("Orders", fmt.Sprint(i), "1", `"v":{"N":"1"}`)
			}
			w.clock.Advance(25 * time.Hour)
			w.backfill.From = "scan"
			w.opts = func(o *pipeline.Options) { o.Adopt = true }
			r := w.open("Orders")
			began := w.clock.Now()
			if err := begin(r, change.Version(change.MillisOf(began.Add(lead)))); err != nil {
				t.Fatal(err)
			}
			r.begin()
			r.hastenUntil("the copy is complete", func() bool { ready, _ := r.p.Ready(); return ready })
			if d := w.clock.Now().Sub(began); d >= lead {
				t.Fatalf("the copy is complete %s after the floor was noted: the time has passed it", d)
			}
			for i := range 12 {
				w.put("Orders", fmt.Sprint(i), "1", `"v":{"N":"2"}`)
			}
			r.settle()
			r.equal()
			s := r.fold("Orders")
			for id, sh := range s.Shards {
				if sh.Pos.After == "" || sh.Clock <= s.Floor()+1 {
					t.Errorf("shard %s had no first change above the floor: %+v", id, sh)
				}
			}
		})
	}
}
