package report

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/verify"
)

func cell(kind verify.Kind, row, rule string) verify.CellDifference {
	return verify.CellDifference{Kind: kind, Row: []byte(row), Rule: rule}
}

// differing adds two items of two rules, two refused items, and cells without an owner.
func differing(t *Table) {
	for _, v := range []verify.Verdict{
		{Status: verify.Different, Cells: []verify.CellDifference{
			cell(verify.MissingRow, "by#t#p", "index by_text"), cell(verify.MissingRow, "by#t#p", "index by_text"),
			cell(verify.Value, "p#1", "rule item"), cell(verify.Value, "p#1", "rule item"),
		}},
		{Status: verify.Different, Cells: []verify.CellDifference{cell(verify.ExtraCell, "p#2", "rule item")}},
		{Status: verify.Refused}, {Status: verify.Refused, Rule: "rule item"},
		{Status: verify.Refused, Cells: []verify.CellDifference{ // as the last change left them that was taken
			cell(verify.Stale, "p#3", "rule item"), cell(verify.ExtraCell, "p#3", "rule item"),
		}},
		{Status: verify.EqualByLog}, {Status: verify.Unproven}, {Status: verify.Kept, Kept: 1, Absent: true},
	} {
		t.Add(&v)
	}
	t.AddCell(&verify.Open{Kind: verify.Foreign, Row: []byte("p#9")})
	t.AddCell(&verify.Open{Kind: verify.Unowned, Row: []byte("withoutaseparator")})
	t.Finish()
}

func TestDifferencesAreCountedByRuleAndPrefix(t *testing.T) {
	table := Table{}
	table.CountGroups(map[string]string{"rule item": "{p}#{s}", "index by_text": "by#{text}#{p}"}, true)
	differing(&table)
	type kinds = map[verify.Kind]int64
	want := []Group{
		{Rule: "rule item", Rows: "{p}#{s}", Items: 4,
			Kinds: kinds{verify.Value: 2, verify.ExtraCell: 1, verify.Refusal: 2}},
		{Items: 1, Kinds: kinds{verify.Foreign: 1, verify.Unowned: 1, verify.Refusal: 1}},
		{Rule: "index by_text", Rows: "by#{text}#{p}", Items: 1, Kinds: kinds{verify.MissingRow: 1}},
	}
	if diff := cmp.Diff(want, table.ByRule); diff != "" {
		t.Errorf("by rule (-want +got):\n%s", diff)
	}
	want = []Group{
		{Prefix: "p#", Items: 3, Kinds: kinds{verify.Value: 2, verify.ExtraCell: 1, verify.Foreign: 1, verify.Refusal: 1}},
		{Prefix: otherRows, Kinds: kinds{verify.Unowned: 1}},
		{Prefix: "by#", Items: 1, Kinds: kinds{verify.MissingRow: 1}},
	}
	if diff := cmp.Diff(want, table.ByPrefix); diff != "" {
		t.Errorf("by prefix (-want +got):\n%s", diff)
	}
	got := KindsIn(table.ByRule)
	names := []verify.Kind{verify.MissingRow, verify.Value, verify.ExtraCell, verify.Foreign, verify.Unowned,
		verify.Refusal}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// TestRefusedItemIsCountedOnceInEachGroup, however many rows and rules it has there.
func TestRefusedItemIsCountedOnceInEachGroup(t *testing.T) {
	table := Table{}
	table.CountGroups(nil, true)
	table.Add(&verify.Verdict{Status: verify.Refused, Cells: []verify.CellDifference{
		cell(verify.Stale, "p#3", "rule item"), cell(verify.Value, "q#3", "rule item"),
		cell(verify.Stale, "p#3#x", "rule part"), cell(verify.Stale, "p#3", "rule item"),
	}})
	table.Finish()
	once := map[verify.Kind]int64{verify.Refusal: 1}
	for name, diff := range map[string]string{
		"rule": cmp.Diff([]Group{{Rule: "rule item", Items: 1, Kinds: once}, {Rule: "rule part", Items: 1, Kinds: once}},
			table.ByRule),
		"prefix": cmp.Diff([]Group{{Prefix: "p#", Items: 1, Kinds: once}, {Prefix: "q#", Items: 1, Kinds: once}},
			table.ByPrefix),
	} {
		if diff != "" {
			t.Errorf("by %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPrefixesAreData: they are not counted unless they are asked for, and memory is bounded
// whatever keys there are.
func TestPrefixesAreData(t *testing.T) {
	hidden := Table{}
	hidden.CountGroups(nil, false)
	differing(&hidden)
	if len(hidden.ByPrefix) > 0 || len(hidden.ByRule) != 3 {
		t.Errorf("%+v", hidden)
	}
	many := Table{}
	many.CountGroups(nil, true)
	for i := range 2 * maxPrefixes {
		many.AddCell(&verify.Open{Kind: verify.Foreign, Row: fmt.Appendf(nil, "%d#x", i)})
	}
	many.Finish()
	if n := len(many.groups.byPrefix); n != maxPrefixes+1 || len(many.ByPrefix) != shownPrefixes ||
		many.ByPrefix[0].Prefix != otherRows || many.ByPrefix[0].Sum() != maxPrefixes {
		t.Errorf("%d prefixes, %+v", n, many.ByPrefix)
	}
}
