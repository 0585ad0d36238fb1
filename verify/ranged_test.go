package verify

import (
	"errors"
	"fmt"
	"testing"
)

// TestRangeAndALookHaveOneJudge: a cell that another item may write, too, is not equal, although
// nothing is known to differ.
func TestRangeAndALookHaveOneJudge(t *testing.T) {
	e := newEngine(t, `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- {name: one, match: {pk: "{p}", sk: "a{s}"}, row: "{p}#", cells: [{attr: x, to: "d:x"}]}
- {name: two, match: {pk: "{p}", sk: "b{s}"}, row: "{p}#", cells: [{attr: x, to: "d:x"}], may_share_cells_with: [one]}
`)
	e.put("p", "a1", `"x":{"S":"1"}`)
	e.put("p", "b1", `"x":{"S":"2"}`)
	s := e.settler()
	look, err := s.Look(t.Context(), []Candidate{{Key: keyOf("p", "a1")}})
	if err != nil || look[0].Status != Unproven {
		t.Fatalf("a look: %+v, %v", look, err)
	}
	read := RangeRead{Start: "p", End: "q", Limit: 100,
		Rows: func(start, end string) (Target, error) { return e.bigtable().Range(start, end), nil }}
	shown, err := s.InRange(t.Context(), read, []Seen{{Item: []byte(e.items[keyOf("p", "a1")])}})
	if err != nil || len(shown.Items[0].Rows) != 1 || shown.Items[0].Equal {
		t.Errorf("in its range: %+v, %v", shown, err)
	}
}

// TestRangeShowsWhatItsRowsHold: of items that were read before, which are equal, differ, have no
// row in the range or are refused; and the items beside them that the range has rows of.
func TestRangeShowsWhatItsRowsHold(t *testing.T) {
	e := newEngine(t, "")
	item := func(pk, sk, x string) []byte {
		return []byte(fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q},"x":{"S":%q}}`, pk, sk, x))
	}
	for _, sk := range []string{"a", "b", "ghost", "late"} {
		e.put("p", sk, `"x":{"S":"1"}`)
	}
	e.put("q", "a", `"x":{"S":"1"}`)
	e.put("p", "gone", `"x":{"S":"1"}`)
	e.put("p", "gone", "")
	s := e.settler()
	read := RangeRead{Start: "p#", End: "p$", Limit: 100,
		Rows: func(start, end string) (Target, error) { return e.bigtable().Range(start, end), nil }}
	items := []Seen{
		{Item: item("p", "a", "1")}, {Item: item("p", "late", "2")}, {Item: item("p", "new", "1")},
		{Item: item("q", "a", "1")},
	}
	shown, err := s.InRange(t.Context(), read, items)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		rows  int
		equal bool
	}{{1, true}, {1, false}, {1, false}, {0, true}} {
		if got := &shown.Items[i]; len(got.Rows) != want.rows || got.Equal != want.equal || got.All != 1 || got.Refused {
			t.Errorf("item %d: %+v", i, got)
		}
	}
	if len(shown.Others) != 2 || shown.Others[0].Key != keyOf("p", "b") || shown.Others[1].Key != keyOf("p", "ghost") ||
		string(shown.Others[1].Rows[0]) != "p#ghost" {
		t.Errorf("others: %+v", shown.Others)
	}
	if e.proofs != 0 || len(e.reads) != 0 {
		t.Errorf("%d proofs and %d reads of the source", e.proofs, len(e.reads))
	}
	read.Part = true // what stands before the first item and behind the last one is not read
	shown, err = s.InRange(t.Context(), read, items[:2])
	if err != nil || shown.Rows != 5 || len(shown.Others) != 2 {
		t.Errorf("a part: %+v, %v", shown, err)
	}
	if shown, err = s.InRange(t.Context(), read, items[:1]); err != nil || shown.Rows != 1 || len(shown.Others) != 0 {
		t.Errorf("a part of one item: %+v, %v", shown, err)
	}
	if shown, err = s.InRange(t.Context(), read, nil); err != nil || shown.Rows != 0 {
		t.Errorf("an empty part: %+v, %v", shown, err)
	}
	read.Part, read.Limit = false, 3
	if _, err = s.InRange(t.Context(), read, items); !errors.Is(err, ErrManyRows) {
		t.Errorf("more rows than the limit: %v", err)
	}
}
