package tmpl

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/transform/lang"
)

// drawPattern draws a pattern whose back-references stand behind their captures.
func drawPattern(t *rapid.T) (p *Pattern, source string, slots int) {
	captures := 0
	for range rapid.IntRange(1, 6).Draw(t, "parts") {
		literal := rapid.SampledFrom([]string{"a", "#", "##", "1", "#a", "b#"}).Draw(t, "literal")
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case kind == 0 || source != "" && source[len(source)-1] == '}':
			source += literal
		case kind == 1 && captures > 0:
			source += "{=c0}"
		default:
			source += fmt.Sprintf("{c%d%s}", captures, []string{"", "", ":d", ":seg"}[kind%4])
			captures++
		}
	}
	parsed, err := lang.ParsePattern(source)
	if err != nil {
		t.Skip(err)
	}
	return NewPattern(parsed, "#", func(name string) int { return int(name[1] - '0') }), source, captures
}

var shortText = rapid.StringMatching(`[a1#b]{0,10}`)

// TestBeginAgreesWithMatch: what the beginning of a text shows of captures is what the whole text
// has, whatever follows.
func TestBeginAgreesWithMatch(t *testing.T) {
	matched, whole, open, all := 0, 0, 0, 0
	check := func(t *rapid.T) {
		p, source, n := drawPattern(t)
		beginning, rest := shortText.Draw(t, "beginning"), shortText.Draw(t, "rest")
		caps, known := make([]string, n), make([]bool, n)
		b, ok := p.Begin(beginning, caps, known)
		full := make([]string, n)
		switch {
		case !p.Match(beginning+rest, full):
			if ok && b.All {
				t.Fatalf("%s matches all that begins with %q, but not %q", source, beginning, beginning+rest)
			}
			return
		case !ok:
			t.Fatalf("%s matches %q, but nothing that begins with %q", source, beginning+rest, beginning)
		case !Overlap(p.Shape(), Text(beginning+rest)):
			t.Fatalf("%q has not the shape of %s", beginning+rest, source)
		}
		matched++
		for _, slot := range b.Whole {
			if whole++; !known[slot] || caps[slot] != full[slot] {
				t.Fatalf("%s on %q + %q: capture %d is %q, not %q", source, beginning, rest, slot, full[slot], caps[slot])
			}
		}
		if b.Open >= 0 {
			open++
			if slices.Contains(b.Whole, b.Open) {
				t.Fatalf("%s on %q: capture %d ends within it and does not", source, beginning, b.Open)
			}
		}
		if b.All {
			all++
		}
	}
	for range 30 { // of 100 patterns few match a text beyond a capture
		rapid.Check(t, check)
	}
	if matched < 5 || whole < 2 || open < 2 || all < 2 {
		t.Errorf("%d texts matched, with %d whole and %d open captures, %d for all texts", matched, whole, open, all)
	}
}

// TestBoundsHoldTheirTexts: the shapes of bounds have every text within, and none that differs from
// them early.
func TestBoundsHoldTheirTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound, text := shortText.Draw(t, "bound"), shortText.Draw(t, "text")
		if rapid.Bool().Draw(t, "long") {
			long := "abcdefghijklmnopqrstuvwxyz0123456789"
			bound, text = long+bound, long+text
		}
		has := func(shapes iter.Seq[Shape]) bool {
			for s := range shapes {
				if Overlap(s, Text(text)) {
					return true
				}
			}
			return false
		}
		if from := has(From(bound)); text >= bound && !from || text < bound && from && len(bound) <= longestBound {
			t.Fatalf("%q from %q: %v", text, bound, from)
		}
		if to := has(To(bound)); text <= bound && !to || text > bound && to && len(bound) <= longestBound {
			t.Fatalf("%q up to %q: %v", text, bound, to)
		}
	})
}

func TestOrderOfPieces(t *testing.T) {
	env := &Env{Captures: []Capture{{Name: "s"}, {Name: "d", Kind: lang.Digits}, {Name: "n", All: true, Type: 'N'}},
		Attrs: true, Segments: SegEscape, Delim: "#"}
	for source, want := range map[string]Order{
		"{s}": Ascending, "{s|hex}": Ascending, "{s|revstr}": Unordered, "{s|lower}": Unordered, "{s|b64}": Unordered,
		"{s|iso_ms|rev64}": Descending, "{s|iso_ms|pad(14)}": Ascending, "{s|hash(16)}": Unordered,
		"{d}": Ascending, "{d|pad(9)}": Unordered, "{d|rev64}": Unordered, "{salt(s;4)}": Unordered,
		"{n}": Unordered, "{n|pad(9)}": Ascending, "{n|ordnum}": Ascending, "{n|rev64}": Descending,
		"{n|revms(99)}": Descending, "{n|s_ms|rev64}": Descending, "{n|int}": Unordered, "{n|hex}": Unordered,
		"{x}": Ascending, "{x|pad(9)}": Unordered,
	} {
		tmpl, err := New(source, env)
		if err != nil {
			t.Fatal(err)
		}
		piece := tmpl.Pieces()[0]
		if got := piece.Order(false); got != want || piece.Source != source {
			t.Errorf("%s: order %d of %q, want %d", source, got, piece.Source, want)
		}
	}
	tmpl, err := New("{x|pad(9)}", env)
	if err != nil {
		t.Fatal(err)
	}
	if piece := tmpl.Pieces()[0]; piece.Order(true) != Ascending {
		t.Error("a number that the mapping does not show is not in order")
	}
}
