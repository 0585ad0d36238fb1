package replay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
)

// put puts an item, whose rows have arrived.
func (w *place) put(table int, item string) {
	w.t.Helper()
	x := w.tables[table]
	w.now++
	w.store(x, w.canonical(x, item), item)
	w.arrive(1)
}

// only returns the counts of the only pattern.
func only(t *testing.T, s *pattern.Snapshot) *pattern.Replay {
	t.Helper()
	if len(s.Patterns) != 1 || s.Patterns[0].Replay == nil {
		t.Fatalf("%+v", s)
	}
	return s.Patterns[0].Replay
}

// TestOtherRowsOfAnItemAreNotItsPlace: rows of an index stand between those that a read is for. It
// reads the families of the latter alone.
func TestOtherRowsOfAnItemAreNotItsPlace(t *testing.T) {
	w := newPlace(t, 1, designs[1])
	for i, sk := range []string{"a", "b", "c"} {
		w.put(0, fmt.Sprintf(`{"pk":{"S":"p"},"sk":{"S":%q},"z":{"S":"%d"}}`, sk, 3-i))
	}
	const body = `{"TableName":"table0","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p"}}}`
	found, s := w.replay([]request{{"Query", body, w.call("Query", body)}})
	if len(found) > 0 || only(t, s).Rows.Sum != 6 {
		t.Errorf("%+v: %+v", found, only(t, s))
	}
}

// ofKinds has an index with items of two rules, of which one has rows for it.
var ofKinds = design{
	keys: []string{"pk:S", "sk:S"}, indexes: []index{{name: "byx", keys: "x:S,sk:S"}},
	mapping: `rules:
- name: r
  match: {pk: "{p}", sk: "{s}", kind: {equals: r}}
  row: "H#{p}#{s}#"
  cells: [{attr: y, to: "d:y"}, {attr: x, to: "d:x"}]
  index: [{name: byx, when: has(item.x), row: "Hx#{x}#{s}#{p}", cells: [{attr: y, to: "x:y"}]}]
- name: other
  match: {pk: "{p}", sk: "{s}"}
  row: "O#{p}#{s}"
  cells: [{attr: y, to: "d:y"}]
`,
}

// TestIndexThatIsNotKnownIsNotCompared: it may lack attributes, by which the mapping finds rules and rows.
func TestIndexThatIsNotKnownIsNotCompared(t *testing.T) {
	later := ofKinds
	later.indexes = []index{{name: "byx", keys: "x:S,sk:S", projection: "KEYS_ONLY", later: true}}
	w := newPlace(t, 1, later)
	w.put(0, `{"pk":{"S":"p"},"sk":{"S":"a"},"x":{"S":"x"},"kind":{"S":"r"}}`)
	const body = `{"TableName":"table0","IndexName":"byx","KeyConditionExpression":"x = :x",` +
		`"ExpressionAttributeValues":{":x":{"S":"x"}}}`
	found, s := w.replay([]request{{"Query", body, w.call("Query", body)}})
	if len(found) > 0 || only(t, s).Skipped[replay.Projection] != 1 {
		t.Errorf("%+v: %+v", found, only(t, s))
	}
}

// TestRowsInAnotherOrderAreNamed, and items whose rows the read does not return, of which the verdict
// of the read warns: once for each pattern. A wrong cell is named beside them.
func TestRowsInAnotherOrderAreNamed(t *testing.T) {
	w := newPlace(t, 1, ofKinds)
	item := func(sk, kind string) string {
		return fmt.Sprintf(`{"pk":{"S":"p"},"sk":{"S":%q},"x":{"S":"x"},"y":{"S":"1"},"kind":{"S":%q}}`, sk, kind)
	}
	w.put(0, item("a", "r"))
	w.put(0, item("a!", "r"))
	w.put(0, item("b", "o"))
	const body = `{"TableName":"table0","IndexName":"byx","KeyConditionExpression":"x = :x",` +
		`"ExpressionAttributeValues":{":x":{"S":"x"}}}`
	w.spoil("Hx#x#a!#p", "x")
	other := strings.Replace(body, `"IndexName"`, `"ConsistentRead":false,"Limit":3,"IndexName"`, 1)
	var reads []request
	for _, b := range []string{body, body, other} {
		reads = append(reads, request{"Query", b, w.call("Query", b)})
	}
	found, s := w.replay(reads)
	kinds := map[string][]string{}
	for _, m := range found {
		kinds[m.Key] = append(kinds[m.Key], m.Kinds...)
	}
	for _, kinds := range kinds {
		slices.Sort(kinds)
	}
	if len(kinds) != 2 || len(s.Patterns) != 2 ||
		!slices.Equal(kinds[`{"pk":{"S":"p"},"sk":{"S":"a!"}}`], []string{"order", "order", "value"}) ||
		!slices.Equal(kinds[`{"pk":{"S":"p"},"sk":{"S":"b"}}`], []string{"not in the range", "not in the range"}) {
		t.Errorf("%v: %+v", kinds, s)
	}
	for i := range s.Patterns {
		if got := s.Patterns[i].Replay.Mismatches; got["order"] != 1 || got["not in the range"] != 1 || got["value"] < 1 {
			t.Errorf("%s: %v", s.Patterns[i].Pattern.Text(), got)
		}
	}
}
