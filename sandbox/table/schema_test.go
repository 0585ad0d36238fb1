package table_test

import (
	"bytes"
	"cmp"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/sandbox/table"
)

// TestPositionsAreInTheOrderOfTheSortKey: of two entries of a partition the first sort key
// attribute that differs decides, whatever bytes the values have. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html, multi-attribute keys.
func TestPositionsAreInTheOrderOfTheSortKey(t *testing.T) {
	part := func(name string) table.KeyAttr { return table.KeyAttr{Name: name, Kind: attr.B} }
	schema := table.Schema{Hash: []table.KeyAttr{part("h1"), part("h2")}, Range: []table.KeyAttr{part("r1"), part("r2")}}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string {
			return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 0xfe, 0xff}), 1, 3).Draw(t, label))
		}
		other := func(label, value string) string { // as often as not the same
			if rapid.Bool().Draw(t, label+" same") {
				return value
			}
			return draw(label)
		}
		item := func(r1, r2 string) attr.Map {
			value := func(s string) attr.Value { return attr.Value{Kind: attr.B, Str: s} }
			return attr.Map{{Name: "h1", Value: value("x")}, {Name: "h2", Value: value("y")},
				{Name: "r1", Value: value(r1)}, {Name: "r2", Value: value(r2)}}
		}
		as := [2]string{draw("a.r1"), draw("a.r2")}
		bs := [2]string{other("b.r1", as[0]), other("b.r2", as[1])}
		keyA, keyB := draw("a.key"), draw("b.key")
		a, b := item(as[0], as[1]), item(bs[0], bs[1])
		got := bytes.Compare(schema.Position(a, table.Key(keyA)), schema.Position(b, table.Key(keyB)))
		want := cmp.Or(cmp.Compare(as[0], bs[0]), cmp.Compare(as[1], bs[1]), cmp.Compare(keyA, keyB))
		if got != want {
			t.Fatalf("%q, key %q against %q, key %q: %d, want %d", as, keyA, bs, keyB, got, want)
		}
	})
}

// TestPartitionsDifferByEachAttribute: what one attribute ends with is not what the next begins
// with.
func TestPartitionsDifferByEachAttribute(t *testing.T) {
	schema := table.Schema{Hash: []table.KeyAttr{{Name: "h1", Kind: attr.S}, {Name: "h2", Kind: attr.S}}}
	of := func(first, second string) string {
		return string(schema.Prefix(attr.Map{{Name: "h1", Value: attr.Value{Kind: attr.S, Str: first}},
			{Name: "h2", Value: attr.Value{Kind: attr.S, Str: second}}}))
	}
	if of("ab", "c") == of("a", "bc") {
		t.Error("the partitions ab, c and a, bc are one")
	}
}
