package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// hotWorld is an engine whose items change during each settling, and whose log has every change.
type hotWorld struct {
	*engine
	log     []*change.Change
	trimmed bool
	since   change.Millis // that was asked for
}

func newHotWorld(t *testing.T, mapping string) *hotWorld {
	return &hotWorld{engine: newEngine(t, mapping)}
}

// next makes a change of an item that is in the log and not applied; an empty rest removes the
// item.
func (h *hotWorld) next(pk, sk, rest string) *change.Change {
	item := ""
	if rest != "" {
		item = fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q},%s}`, pk, sk, rest)
	}
	c := h.change(keyOf(pk, sk), item)
	h.log = append(h.log, c)
	return c
}

// logged is the hook that reads the log.
func (h *hotWorld) logged(
	_ context.Context, table string, since change.Millis, keys [][]byte, f func(int, *change.Change) error,
) error {
	h.since = since
	if h.trimmed || table != "S" {
		return fmt.Errorf("read %s: %w", table, ErrTrimmed)
	}
	for _, c := range h.log {
		at := slices.IndexFunc(keys, func(k []byte) bool { return string(k) == string(c.Keys) })
		if at < 0 {
			continue
		}
		if err := f(at, c); err != nil {
			return err
		}
	}
	return nil
}

// settle settles items with the log.
func (h *hotWorld) settle(candidates ...Candidate) []Verdict {
	h.t.Helper()
	s := h.settler()
	s.Logged = h.logged
	v, err := s.Settle(h.t.Context(), candidates)
	if err != nil {
		h.t.Fatal(err)
	}
	return v
}

// TestBusyItemIsEqualByTheLog in each class of rows: it changes during each settling, moves, goes
// and comes back, its changes are united, and the newest of them is not applied yet.
func TestBusyItemIsEqualByTheLog(t *testing.T) {
	for _, kind := range histories {
		h := newHotWorld(t, kind.mapping)
		rnd := rand.New(rand.NewPCG(3, 9))
		rest := func() string {
			return fmt.Sprintf(`"text":{"S":"t%d"},"x":{"S":"%d"},"y":{"S":"%d"}`, rnd.IntN(3), rnd.IntN(1000), rnd.IntN(3))
		}
		pk, hot, calm := "p", kind.sorts[0], kind.sorts[1]
		h.put(pk, calm, rest())
		var waiting *change.Change // in the log, and not applied
		turns := 0
		h.beforeProof = func() {
			turns++
			if waiting != nil {
				h.apply(waiting)
			}
			h.apply(h.next(pk, hot, rest()))
			if rnd.IntN(3) == 0 {
				h.apply(h.next(pk, hot, ""))
			}
			h.apply(h.next(pk, hot, rest()))
			if h.program.CanCoalesce() {
				h.apply(h.next(pk, hot, rest()), h.next(pk, hot, rest()))
			}
			waiting = h.next(pk, hot, rest())
			waiting.Created = h.now() + 1000 // the proof does not cover it
		}
		began := h.now()
		v := h.settle(Candidate{Key: keyOf(pk, hot)}, Candidate{Key: keyOf(pk, calm)})
		if v[0].Status != EqualByLog || v[1].Status != Equal || turns != settlings {
			t.Errorf("%s, after %d settlings: %+v", kind.name, turns, v)
		}
		if h.since != began-proofMargin {
			t.Errorf("%s: the log was read since %d, %d ms before the first reading", kind.name, h.since, began-h.since)
		}
	}
}

// TestBusyItemIsNeverEqualWithDamage: whatever is wrong under a key that changes all the time, the
// log does not make it equal. Each damage is done again after each change, because the stream
// repairs some of them.
func TestBusyItemIsNeverEqualWithDamage(t *testing.T) {
	wildcard, moves := histories[1].mapping, histories[4].mapping
	for _, c := range []struct {
		name, mapping string
		damage        func(h *hotWorld)
		rows          []string // that the comparison of the whole table has named
		why           string
	}{
		{"a wrong cell", "", func(h *hotWorld) { h.foreign("p#a", "d", "x", "wrong") }, nil, "value"},
		{"a missing cell", "", func(h *hotWorld) { h.foreign("p#a", "d", "x", "") }, nil, "missing_cell"},
		{"a cell too many", "", func(h *hotWorld) { h.foreign("p#a", "d", "z", "ghost") }, nil, "extra_cell"},
		{"a wrong cell in a shared row", wildcard, func(h *hotWorld) { h.foreign("p", "d", "a/x", "wrong") }, nil, "value"},
		{"a cell too many in a shared row", wildcard, func(h *hotWorld) { h.foreign("p", "d", "a/z", "ghost") }, nil,
			"extra_cell"},
		{"a change that was lost", "", func(h *hotWorld) { h.next("p", "a", `"x":{"S":"lost"},"text":{"S":"t"}`) }, nil,
			"value"},
		{"a change that the log does not have", "", func(h *hotWorld) {
			c := h.next("p", "a", fmt.Sprintf(`"x":{"S":"%d"},"text":{"S":"unknown"}`, h.version))
			h.log = h.log[:len(h.log)-1]
			h.apply(c)
		}, nil, "no change with the version"},
		{"a row that the item has left", moves, func(h *hotWorld) {
			h.apply(h.next("p", "a", `"x":{"S":"1"},"text":{"S":"old"}`))
			c := h.next("p", "a", `"x":{"S":"1"},"text":{"S":"t"}`)
			c.Old = []byte(strings.Replace(string(c.Old), "old", "other", 1)) // so that the row of old stays
			h.apply(c)
		}, []string{"by#old#p#a"}, "stale"},
		{"an empty row", "", func(h *hotWorld) { h.foreign("p#a", "d", "x", ""); h.foreign("p#a", "d", "text", "") }, nil,
			"missing_row"},
		{"a log without the item", "", func(h *hotWorld) { h.log = nil }, nil, "no change of it"},
		{"a log that is trimmed", "", func(h *hotWorld) { h.trimmed = true }, nil, "does not reach back"},
		{"images that are not in the stream", "", func(h *hotWorld) { h.log[len(h.log)-1].New = nil }, nil, "attributes"},
	} {
		h, turns := newHotWorld(t, c.mapping), 0
		h.beforeProof = func() {
			turns++
			h.apply(h.next("p", "a", fmt.Sprintf(`"x":{"S":"%d"},"text":{"S":"t"}`, turns)))
			c.damage(h)
		}
		candidate := Candidate{Key: keyOf("p", "a")}
		for _, row := range c.rows {
			candidate.Rows = append(candidate.Rows, []byte(row))
		}
		if v := h.settle(candidate); v[0].Status != Unproven || !strings.Contains(v[0].Why, c.why) || turns != settlings {
			t.Errorf("%s, after %d settlings: %+v", c.name, turns, v[0])
		}
	}
}

func TestItemsThatAreEqualByTheLogAreCountedApart(t *testing.T) {
	h := newHotWorld(t, "")
	h.put("p", "calm", `"x":{"S":"1"}`)
	h.put("p", "a", `"x":{"S":"1"}`)
	h.lose("p", "a", `"x":{"S":"seen while it was applied"}`)
	f := h.full(h.options())
	h.beforeProof = func() { h.apply(h.next("p", "a", fmt.Sprintf(`"x":{"S":"%d"}`, h.version))) }
	r := Resyncer{Settler: h.settler()}
	r.Logged = h.logged
	res, err := r.Run(t.Context(), f)
	if err != nil || res.ByLog != 1 || res.Equal != 2 || res.Unproven+res.Busy+res.Different != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}
