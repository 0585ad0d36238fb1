package verify

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	sandbox "github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/test/oracle"
)

// histories are mappings of each class, with the sort keys that they take.
var histories = []struct {
	name, mapping string
	sorts         []string
}{
	{"default, rows of one item", "", []string{"a", "b", "c", "d"}},
	{"shared rows, wildcard columns", `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attrs: all, except: [pk, sk], to: "d:{s}/{attr}"}]
`, []string{"a", "b", "c", "d"}},
	{"shared rows, columns of the key", `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attr: x, to: "d:{s}/x"}, {attr: y, to: "d:{s}/y"}]
`, []string{"a", "b", "c", "d"}},
	{"siblings in one column", comments, []string{"c1001", "c1002", "c1003"}},
	{"rows that depend on an attribute", `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attr: x, to: "d:{s}/x"}, {attr: y, to: "d:{s}/y"}]
  index:
  - {name: by_text, row: "by#{text}#{p}#{s}", cells: [{attr: x, to: "d:x"}]}
`, []string{"a", "b"}},
}

// history makes random changes of a few items: puts with any of four attributes, and removals.
type history struct {
	*world
	rnd   *rand.Rand
	sorts []string
	done  []*change.Change
}

func (h *history) next() *change.Change {
	pk, sk := fmt.Sprint("p", h.rnd.IntN(2)), h.sorts[h.rnd.IntN(len(h.sorts))]
	key := fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk)
	item := ""
	if _, here := h.items[key]; !here || h.rnd.IntN(4) > 0 {
		item = fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q},"text":{"S":"t%d"}`, pk, sk, h.rnd.IntN(3))
		for _, attr := range []string{"x", "y", "z"} {
			if h.rnd.IntN(2) == 0 {
				item += fmt.Sprintf(`,%q:{"S":"%d"}`, attr, h.rnd.IntN(1000))
			}
		}
		item += "}"
	}
	c := h.change(key, item)
	h.done = append(h.done, c)
	return c
}

// step applies one change, or several of one item united; now and then it first replays a stretch
// of the past.
func (h *history) step() {
	if len(h.done) > 0 && h.rnd.IntN(8) == 0 {
		for _, c := range h.done[max(0, len(h.done)-1-h.rnd.IntN(8)):] {
			h.apply(c)
		}
	}
	first := h.next()
	together := []*change.Change{first}
	for h.program.CanCoalesce() && h.rnd.IntN(3) == 0 {
		c := h.next()
		if string(c.Keys) != string(first.Keys) {
			h.apply(together...)
			together = nil
			first = c
		}
		together = append(together, c)
	}
	h.apply(together...)
}

// TestRandomHistoriesStayEqual is the sink's whole promise: under refused calls, lost answers,
// calls that arrive after their client gave up, replays and coalescing, a plain reader sees the
// source after each step.
func TestRandomHistoriesStayEqual(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 1
	}
	for _, kind := range histories {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(seeds) {
				w := newWorld(t, kind.mapping)
				h := &history{world: w, rnd: rand.New(rand.NewPCG(seed, 7)), sorts: kind.sorts}
				w.front.Faults.Random(sandbox.Odds{Refuse: 0.03, Ambiguous: 0.05, Late: 0.05})
				w.front.Faults.HoldLate()
				for range 40 {
					h.step()
					if h.rnd.IntN(5) == 0 {
						h.deliver()
					}
					h.mustBeEqual(seed)
				}
				h.deliver()
				h.mustBeEqual(seed)
			}
		})
	}
}

// deliver lets all late calls arrive, and holds those to come.
func (h *history) deliver() {
	h.front.Faults.ReleaseLate()
	for began := time.Now(); h.front.Faults.LateWaiting() > 0; {
		if err := failure.Pause(h.t.Context(), time.Millisecond); err != nil || time.Since(began) > 5*time.Minute {
			h.t.Fatalf("%d late writes were not applied: %v", h.front.Faults.LateWaiting(), err)
		}
	}
}

func (h *history) mustBeEqual(seed uint64) {
	h.t.Helper()
	if res := h.compare(oracle.Options{ShowValues: true}); !res.Equal() {
		for _, d := range res.Differences {
			h.t.Logf("%+v want %q have %q", d, d.Want, d.Have)
		}
		h.t.Fatalf("seed %d, after %d changes: %d differences, %d refused", seed, len(h.done), res.Count, res.Refused)
	}
}
