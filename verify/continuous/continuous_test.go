package continuous

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var mappings = map[string]string{"own rows": "", "shared rows": sharedRows, "moving rows": movingRows}

const attrs = `"color":{"S":"red"},"x":{"N":"1"},"text":{"S":"a text that is longer than sixteen bytes"}`

// fill writes n items on both sides.
func (w *world) fill(n int) {
	w.t.Helper()
	for i := range n {
		w.put(fmt.Sprint("p", i%20), fmt.Sprint("s", i), attrs)
	}
}

func cell(qualifier string) transform.Cell {
	return transform.Cell{Family: "d", Qualifier: []byte(qualifier), Value: []byte("planted")}
}

// rowOf returns a row that holds an item.
func (w *world) rowOf(key string) string {
	w.t.Helper()
	for row, owners := range w.rows {
		if owners[key] != nil {
			return row
		}
	}
	w.t.Fatalf("no row holds %s", key)
	return ""
}

// TestEveryDifferenceIsFoundInACycleAndCleared, in each class of rows.
func TestEveryDifferenceIsFoundInACycleAndCleared(t *testing.T) {
	key := keyOf("p3", "s3")
	for name, plant := range map[string]func(w *world){
		"missing row": func(w *world) { delete(w.rows[w.rowOf(key)], key) },
		"new item":    func(w *world) { w.lose("p3", "s3000", attrs) },
		"wrong cell":  func(w *world) { w.rows[w.rowOf(key)][key][1].Value = []byte("other") },
		"missing cell": func(w *world) {
			row := w.rows[w.rowOf(key)]
			row[key] = row[key][1:]
		},
		"extra row":  func(w *world) { w.lose("p3", "s3", "") },
		"moved item": func(w *world) { w.lose("p3", "s3", `"color":{"S":"blue"}`) },
		"extra cell": func(w *world) {
			row := w.rowOf(key)
			last := w.rows[row][key][0]
			w.plant(row, key, cell(string(last.Qualifier)+"2"))
		},
	} {
		for class, mapping := range mappings {
			t.Run(name+", "+class, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, mapping)
					w.fill(100)
					plant(w)
					v := New(w.options(50))
					defer w.runs(v)()
					w.cycles(v, 1)
					s, list := v.Status(), v.Differences()
					if s.Different != 1 || s.Foreign+s.Unproven+s.Refused != 0 || s.LastDifference == nil || len(list) != 1 {
						t.Fatalf("%+v, %d listed", s, len(list))
					}
					w.mu.Lock()
					w.replicate(string(list[0].Key))
					w.mu.Unlock()
					w.pass(7 * time.Minute)
					if s := v.Status(); s.Different != 0 || len(v.Differences()) != 0 || s.LastDifference == nil {
						t.Errorf("after the repair: %+v", s)
					}
				})
			})
		}
	}
}

// TestGuardsOfExpiredItemsAreCollectedWhereNothingIsSeen: an expired item that the mapping keeps is
// no difference. Where a reader sees none of its cells, the comparison has its guard collected;
// else the guard stays.
func TestGuardsOfExpiredItemsAreCollectedWhereNothingIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  on_ttl_expiry: keep
  cells: [{attr: x, to: "d:{s}/x"}]
`)
		for i := range 30 {
			w.put(fmt.Sprint("p", i%7), fmt.Sprint(i), `"x":{"S":"1"}`)
		}
		w.put("p1", "bare", `"y":{"S":"1"}`)
		w.put("p1", "seen", `"x":{"S":"1"}`)
		w.mu.Lock()
		w.lose("p1", "bare", "")
		w.lose("p1", "seen", "")
		w.mu.Unlock()
		var collected []string
		o := w.options(50)
		o.Collect = func(_ context.Context, bare []verify.Verdict) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			for i := range bare {
				collected = append(collected, fmt.Sprintf("%s %s", bare[i].Key, bare[i].Bare))
				delete(w.rows["p1"], bare[i].Key)
			}
			return nil
		}
		v := New(o)
		defer w.runs(v)()
		w.cycles(v, 2)
		w.mu.Lock()
		defer w.mu.Unlock()
		if s := v.Status(); s.Different+s.Foreign+s.Unproven+s.Refused != 0 {
			t.Errorf("%+v", s)
		}
		if want := []string{keyOf("p1", "bare") + " [p1]"}; !slices.Equal(collected, want) {
			t.Errorf("collected %q, want %q", collected, want)
		}
	})
}

func TestCellsOfNobodyAreForeignUntilTheyAreGone(t *testing.T) {
	for class, mapping := range mappings {
		t.Run(class, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, mapping)
				w.fill(100)
				w.plant("nobody's", "", cell("x"), cell("y"))
				v := New(w.options(50))
				defer w.runs(v)()
				w.cycles(v, 1)
				if s, list := v.Status(), v.Differences(); s.Foreign != 2 || s.Different != 0 || len(list) != 2 ||
					list[0].Status != string(verify.Foreign) {
					t.Errorf("%+v, %+v", s, list)
				}
				w.mu.Lock()
				delete(w.rows, "nobody's")
				w.mu.Unlock()
				w.pass(7 * time.Minute)
				if s := v.Status(); s.Foreign != 0 || len(v.Differences()) != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestVersionsOfABurstAreNotInTheFuture: more is reserved for versions by now than when the
// comparison began.
func TestVersionsOfABurstAreNotInTheFuture(t *testing.T) {
	for class, mapping := range mappings {
		t.Run(class, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, mapping)
				w.fill(100)
				var lead atomic.Int64
				lead.Store(time.Hour.Milliseconds())
				o := w.options(50)
				o.Lead = func() change.Millis { return change.Millis(lead.Load()) }
				v := New(o)
				w.guards = time.Now().Add(2 * time.Hour)
				stop := w.runs(v)
				w.cycles(v, 1)
				if s := v.Status(); s.Different == 0 {
					t.Errorf("guards in the future: %+v", s)
				}
				lead.Store(3 * time.Hour.Milliseconds())
				w.pass(7 * time.Minute)
				if s := v.Status(); s.Different != 0 {
					t.Errorf("so far versions may be ahead now: %+v", s)
				}
				stop()
			})
		})
	}
}

// TestLaggingReadIsNoDifference: eventually consistent reads show old items, none, or such that are
// gone.
func TestLaggingReadIsNoDifference(t *testing.T) {
	for class, mapping := range mappings {
		t.Run(class, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, mapping)
				w.fill(100)
				for i := range 40 {
					pk, sk := fmt.Sprint("p", i%20), fmt.Sprint("s", i)
					old := w.items[keyOf(pk, sk)]
					switch i % 3 {
					case 0:
						w.put(pk, sk, `"color":{"S":"blue"},"y":{"N":"2"}`)
					case 1:
						w.put(pk, sk, "")
						w.lag[keyOf(pk, sk)], w.items[keyOf(pk, sk)] = old, "" // for the scan to come by
						delete(w.items, keyOf(pk, sk))
					case 2:
						old = "-"
					}
					w.lag[keyOf(pk, sk)] = old
				}
				v := New(w.options(50))
				defer w.runs(v)()
				seen := int64(0)
				for range 600 {
					w.pass(100 * time.Millisecond)
					s := v.Status()
					seen = max(seen, s.Checks)
					if s.Different+s.Unproven > 0 {
						t.Fatalf("%+v: %+v", s, v.Differences()[0])
					}
				}
				if seen == 0 {
					t.Error("nothing was a candidate")
				}
			})
		})
	}
}

// TestUnitsAreWhatWasTold: scanning, reading and settling together consume the budget ± 10 % in
// each minute, whatever share of the items looks different.
func TestUnitsAreWhatWasTold(t *testing.T) {
	for _, lagging := range []int{0, 5, 50} {
		for _, units := range []float64{10, 40} {
			t.Run(fmt.Sprintf("%d percent lag, %v units", lagging, units), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, "")
					w.fill(200)
					keys := 0
					for key := range w.items {
						if keys++; keys%100 < lagging {
							w.lag[key] = "-"
						}
					}
					o := w.options(units)
					o.Every, o.Again = time.Nanosecond, time.Minute
					v := New(o)
					defer w.runs(v)()
					w.pass(time.Minute)
					for minute := range 2 {
						before := w.consumed()
						w.pass(time.Minute)
						if used := w.consumed() - before; used < 54*units || used > 66*units {
							t.Errorf("minute %d: %.0f units of %.0f", minute, used, 60*units)
						}
					}
				})
			})
		}
	}
}

func (w *world) consumed() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.units
}

// TestHeldVerifierReadsNothing, also when what it settles becomes doubtful meanwhile.
func TestHeldVerifierReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.fill(100)
		w.lose("p3", "s3", "")
		hold := func(why string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.hold = why
		}
		w.proven = func() { hold("copying") }
		v := New(w.options(50))
		defer w.runs(v)()
		for v.o.Hold() == "" {
			w.pass(10 * time.Millisecond)
		}
		w.pass(time.Minute)
		before := w.consumed()
		w.pass(time.Hour)
		if s := v.Status(); w.consumed() != before || s.Waits != "copying" || s.Different != 0 || s.Checks != 1 {
			t.Errorf("%+v, %v units", s, w.consumed()-before)
		}
		w.mu.Lock()
		w.proven = nil
		w.mu.Unlock()
		hold("")
		w.cycles(v, 1)
		if s := v.Status(); s.Different != 1 || s.Waits != "" {
			t.Errorf("%+v", s)
		}
	})
}

// TestInterruptedPassGoesOn: what was compared is not compared again, after any number of
// interruptions.
func TestInterruptedPassGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.fill(2000)
		o := w.options(50)
		o.Every = time.Hour
		v := New(o)
		last := 0.0
		for v.Status().Cycles == 0 {
			stop := w.runs(v)
			w.pass(1500 * time.Millisecond)
			stop()
			s := v.Status()
			if s.Items.Share < last {
				t.Errorf("the share fell from %v to %v", last, s.Items.Share)
			}
			last = s.Items.Share
		}
		if s := v.Status(); v.items.Last != 2000 || v.rows.Last != 2000 || s.Different != 0 || s.CheckedSince == nil {
			t.Errorf("%+v %+v", v.items, v.rows)
		}
	})
}

// TestPassesOfASmallTableKeepTheirDistance: a table of a few items is not read all the time.
func TestPassesOfASmallTableKeepTheirDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.fill(10)
		v := New(w.options(50))
		defer w.runs(v)()
		w.pass(time.Hour + time.Minute)
		if s := v.Status(); s.Cycles < 55 || s.Cycles > 62 || w.consumed() > 62*10 {
			t.Errorf("%+v, %v units", s, w.consumed())
		}
	})
}

// TestRefusedItemIsCounted, and an item that changes in each of its settlings is unproven.
func TestRefusedItemIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, movingRows)
		w.fill(30)
		w.items[keyOf("p", "no color")] = `{"pk":{"S":"p"},"sk":{"S":"no color"}}`
		w.lose("p", "busy", `"color":{"S":"red"},"n":{"N":"1"}`)
		n := 0
		w.proven = func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			n++
			w.lose("p", "busy", fmt.Sprintf(`"color":{"S":"red"},"n":{"N":"1%d"}`, n))
		}
		v := New(w.options(50))
		defer w.runs(v)()
		w.cycles(v, 2)
		statuses := []string{}
		for _, d := range v.Differences() {
			statuses = append(statuses, d.Status)
		}
		slices.Sort(statuses)
		s := v.Status()
		if s.Refused != 1 || s.Unproven != 1 || s.Different != 0 || fmt.Sprint(statuses) != "[refused unproven]" {
			t.Errorf("%+v, %v", s, statuses)
		}
	})
}
