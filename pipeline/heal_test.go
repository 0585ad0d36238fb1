package pipeline_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// loseChanges updates, deletes and inserts items, and deletes and writes one again, while the
// pipeline is away for longer than DynamoDB keeps its records.
func (w *world) loseChanges() {
	w.t.Helper()
	for i := range 30 {
		pk := fmt.Sprint("p", i%7)
		switch i % 5 {
		case 0:
			w.delete("Orders", pk, fmt.Sprint(i))
		case 1:
			w.put("Orders", pk, fmt.Sprint(i), `"v":{"N":"100"}`)
		case 2:
			w.delete("Orders", pk, fmt.Sprint(i))
			w.put("Orders", pk, fmt.Sprint(i), `"other":{"S":"x"}`)
		case 3:
			w.put("Orders", pk, fmt.Sprint("new", i), `"v":{"N":"7"}`)
		}
	}
	w.clock.Advance(26 * time.Hour)
	w.streams.Trim(w.clock.Now().Add(-24 * time.Hour))
}

// hasten advances the time while something waits for it, as fast as the stream follows: what waits
// for changes that are too far behind the time would wait for longer. On a busy machine it is
// called less often, and advances further. It leaves the time alone while a copy writes, whose
// pages may become too old, and advances slowly while other items are read and written: on a
// machine that stands still for some seconds they would be too old each time.
func (r *run) hasten() {
	since := time.Since(r.hastened)
	step := min(max(time.Second, 100*since), 10*time.Second)
	r.hastened = time.Now()
	st := r.table("Orders")
	if st.Requests != nil || st.Resync != nil && st.Resync.Doing != "waiting" {
		step = min(20*since, time.Second)
	}
	if st.Copy != nil && st.Copy.Items != r.copiedBefore {
		r.copiedBefore = st.Copy.Items
		return
	}
	through, ok := r.p.AppliedThrough()
	switch behind := r.clock.Now().Sub(through); {
	case !ok || behind > time.Hour: // a gap, which stays where it is
		r.clock.Advance(100 * time.Millisecond)
	case behind < 20*time.Second:
		r.clock.Advance(step)
	}
}

// hastenUntil is until for what takes some of the service's time.
func (r *run) hastenUntil(what string, fact func() bool) {
	r.t.Helper()
	r.until(what, func() bool {
		r.hasten()
		return fact()
	})
}

// healed advances the time until nothing is pending, so that the minute below the reading does not
// have to pass.
func (r *run) healed() {
	r.t.Helper()
	r.hastenUntil("the resync is complete", func() bool {
		st := r.table("Orders").State
		return st != "healing" && st != "recovering" && r.fold("Orders").Resync == nil
	})
	r.settle()
	r.equal()
	r.ready()
}

func TestGapIsHealedByAResyncOfTheTable(t *testing.T) {
	for _, onGap := range []string{"wait", "heal"} {
		t.Run(onGap, func(t *testing.T) {
			long(t, "reads the table twice")
			w := newWorld(t)
			w.onGap = onGap
			w.createTable("Orders")
			r := w.start("Orders")
			for i := range 30 {
				w.put("Orders", fmt.Sprint("p", i%7), fmt.Sprint(i), `"v":{"N":"1"},"w":{"S":"y"}`)
			}
			r.settle()
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			w.loseChanges()
			r = w.restart("Orders")
			if onGap == "wait" {
				r.lost()
				r.until("every shard has its gap", func() bool { return r.table("Orders").Gaps == r.table("Orders").Shards.Open })
				order := &checkpoint.ResyncOrder{ID: "r1"}
				for _, g := range r.fold("Orders").Gaps {
					order.Gaps = append(order.Gaps, g.ID())
				}
				r.control("Orders", &checkpoint.Control{Resync: order, By: "test"})
			} else {
				r.hastenUntil("the gap is being healed", func() bool {
					return len(r.fold("Orders").Gaps) > 0 && r.fold("Orders").Resync != nil
				})
			}
			r.until("the status says that it heals", func() bool {
				st := r.table("Orders")
				return st.State == "healing" && strings.Contains(strings.Join(st.Reasons, " "), "compared")
			})
			r.healed()
			s := r.fold("Orders")
			if g := s.Gaps[0]; !g.Accepted || len(s.DifferingSinks(&g)) > 0 || s.LastResync.Result.Items == 0 {
				t.Errorf("%+v, %+v", g, s.LastResync)
			}
		})
	}
}

// TestResyncOfAnEqualTableWritesNothing: rewriting equal rows would cost the target, give their
// cells new times, and push versions out of histories. A reader that polls all the time sees the
// same cells with the same times.
func TestResyncOfAnEqualTableWritesNothing(t *testing.T) {
	long(t, "reads the tables")
	for name, mapping := range map[string]string{
		"own rows": "", "histories": classes["histories"], "shared rows": sharedRows,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mapping = mapping
			w.createTable("Orders")
			r, p := w.start("Orders"), &pairs{w: w}
			for i := range 40 {
				p.put(fmt.Sprint("p", i%7), fmt.Sprint(i%5))
				p.put(fmt.Sprint("p", i%7), fmt.Sprint(i%5)) // two versions
			}
			r.settle()
			before := r.dated("Orders")
			r.order("r1")
			r.hastenUntil("the resync is complete", func() bool {
				if diff := cmp.Diff(before, r.dated("Orders")); diff != "" {
					t.Fatalf("cells changed:\n%s", diff)
				}
				return r.fold("Orders").Resync == nil
			})
			r.equal()
			if res := r.fold("Orders").LastResync; res.ID != "r1" || res.Result.Written != 0 || res.Result.Equal != 35 {
				t.Errorf("%+v", res)
			}
		})
	}
}

// dated returns the cells of a table, all versions of them, each with its time.
func (r *run) dated(name string) (cells []string) {
	r.t.Helper()
	info, err := r.src.Table(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	prog, err := r.compile(name)(info)
	if err != nil {
		r.t.Fatal(err)
	}
	var views []bigtable.View
	for _, f := range prog.Families() {
		views = append(views, bigtable.View{Family: f.Name, Versions: 10})
	}
	err = r.sink.Rows(r.t.Context(), target(name), "", "", views, func(row *bigtable.Row) error {
		for _, c := range row.Cells {
			cells = append(cells, fmt.Sprintf("%s %s:%q=%q at %d", row.Key, c.Family, c.Qualifier, c.Value, c.Time.UnixMilli()))
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return cells
}

// TestLostLogIsRecoveredWithEveryChange: what was written while there was no log is brought by the
// resync.
func TestLostLogIsRecoveredWithEveryChange(t *testing.T) {
	long(t, "starts a pipeline twice")
	w := newWorld(t)
	w.createTable("Orders")
	r := w.start("Orders")
	for i := range 30 {
		w.put("Orders", fmt.Sprint("p", i%7), fmt.Sprint(i), `"v":{"N":"1"},"w":{"S":"y"}`)
	}
	r.settle()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	w.loseVolume()
	for i := range 30 {
		if pk := fmt.Sprint("p", i%7); i%3 == 0 {
			w.delete("Orders", pk, fmt.Sprint(i))
		} else if i%3 == 1 {
			w.put("Orders", pk, fmt.Sprint(i), `"v":{"N":"2"}`)
		}
	}
	w.clock.Advance(10 * time.Minute) // outside of what the new life reads
	rec := w.recover("Orders")
	r = w.restart("Orders")
	r.until("the status says that it recovers", func() bool { return r.table("Orders").State == "recovering" })
	w.put("Orders", "during", "1", `"v":{"N":"3"}`)
	r.healed()
	for _, cell := range r.dated("Orders") { // a repair below the floor might lose to what the life before has written
		at, err := strconv.ParseInt(cell[strings.LastIndexByte(cell, ' ')+1:], 10, 64)
		if strings.HasPrefix(cell, "p1#1 ") && (err != nil || at <= int64(rec.Floor)) {
			t.Errorf("%s: the new life begins above %d", cell, rec.Floor)
		}
	}
}
