package access

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/emit"
)

func text(attr, s string) change.Attr {
	return change.Attr{Name: attr, Value: change.Value{Kind: change.KindString, S: s}}
}

// TestBoundsOfAPartLimitNothing: keys go on with the second part of the sort key, and the read has
// bounds of the whole: "1#2" is before "U#1", and its row 1#2#1 is not before 1#1.
func TestBoundsOfAPartLimitNothing(t *testing.T) {
	p := design{keys: "p s", rules: `{p: "{a}", s: "{x}#{y}"} → {a}#{y}#{x}`}.compiled(t)
	for op, bounds := range map[string][]string{
		Less: {"U#1"}, LessEqual: {"U#1"}, More: {"0#9"}, MoreEqual: {"0#9"}, Between: {"0#9", "U#1"},
	} {
		tests := []Test{{Attr: "p", Op: Equal, Values: []change.Value{text("p", "1").Value}}, {Attr: "s", Op: op}}
		for _, b := range bounds {
			tests[1].Values = append(tests[1].Values, text("s", b).Value)
		}
		f := NewFinder(p, Query{Tests: tests}, nil)
		place, err := f.Place(tests)
		rows, _ := emit.Project(p, change.Image{text("p", "1"), text("s", "1#2"), text("v", "a")})
		if err != nil || !place.Holds(string(rows[0].Key)) || f.Verdict.Grade != WiderRange {
			t.Errorf("%s %v: %s is not in %+v, which is graded %q, %v", op, bounds, rows[0].Key, place, f.Verdict.Grade, err)
		}
	}
}

func TestFirstKeyBehindAPrefix(t *testing.T) {
	for prefix, want := range map[string]string{
		"a": "b", "a\x7f": "a\x80", "a\x80": "a\x81", "a\xfe\xff": "a\xff", "a\xff\xff": "b", "\xff": "", "": "",
	} {
		if got := behind(prefix); got != want {
			t.Errorf("behind %q: %q, want %q", prefix, got, want)
		}
	}
}
