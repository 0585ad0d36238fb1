package tmpl

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/transform/lang"
)

func TestPatterns(t *testing.T) {
	for _, tt := range []struct{ pattern, text, want string }{
		{"{x}", "", "x="},
		{"Video", "Videos", "no"},
		{"USER#{id}", "USER#", "id="},
		{"{cand}.{shard:d}", "a.b.3", "cand=a.b shard=3"},
		{"{cand}.{shard:d}", "a.b.c", "no"},
		{"{a}#{b}", "x#y#z", "a=x b=y#z"},
		{"{a:seg}#{b:seg}", "x#y#z", "no"},
		{"{a:seg}#{b}#end", "x#y#z#end", "a=x b=y#z"},
		{"{n:d}x", "x", "no"},
		{"{i}/{=i}", "ab/ab", "i=ab"},
		{"{i}/{=i}", "ab/abc", "no"},
		{"{i}-{=i}", "a-b-a-b", "i=a-b"},
		{"{{{x}}}", "{v}", "x=v"},
	} {
		ast, err := lang.ParsePattern(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		p := NewPattern(ast, "#", func(name string) int {
			for i, n := range names {
				if n == name {
					return i
				}
			}
			names = append(names, name)
			return len(names) - 1
		})
		caps := make([]string, len(names))
		got := "no"
		if p.Match(tt.text, caps) {
			var parts []string
			for i, n := range names {
				parts = append(parts, n+"="+caps[i])
			}
			got = strings.Join(parts, " ")
		}
		if got != tt.want {
			t.Errorf("%q on %q: %s, want %s", tt.pattern, tt.text, got, tt.want)
		}
	}
}

// TestDisjointShapesNeverGiveTheSameText: where Overlap says no, no two evaluations may be equal.
func TestDisjointShapesNeverGiveTheSameText(t *testing.T) {
	part := rapid.SampledFrom([]string{"{a}", "{b}", "{d}", "{d|pad(3)}", "{s}", "#", "/", "x", "00", "{a|hex}",
		"{d|rev64}", "{salt(a;8)}"})
	value := rapid.SampledFrom([]string{"", "x", "x#", "/", "00", "#x/", "12", "x00"})
	disjoint := 0
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]string{SegStrict, SegEscape, SegOrdered}).Draw(t, "mode")
		env := &Env{Captures: []Capture{{Name: "a", Kind: lang.Any, Key: true}, {Name: "b", Kind: lang.Any, Key: true},
			{Name: "d", Kind: lang.Digits, Key: true}, {Name: "s", Kind: lang.Segment, Key: true}},
			Delim: "#", Segments: mode, Empty: true}
		one := func(n string) (*Template, string, error) {
			tpl, err := New(strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, n), ""), env)
			if err != nil {
				t.Fatal(err)
			}
			scope := &Scope{Caps: []string{value.Draw(t, n+" a"), value.Draw(t, n+" b"),
				rapid.SampledFrom([]string{"0", "7", "12", "345"}).Draw(t, n+" d"),
				strings.ReplaceAll(value.Draw(t, n+" s"), "#", "")}}
			out, err := tpl.Append(nil, scope)
			return tpl, string(out), err
		}
		ta, a, erra := one("first")
		tb, b, errb := one("second")
		if erra != nil || errb != nil || Overlap(ta.Shape, tb.Shape) {
			return
		}
		disjoint++
		if a == b {
			t.Fatalf("%q and %q are said to be disjoint, but both give %q", ta.Source, tb.Source, a)
		}
	})
	if disjoint == 0 {
		t.Error("no pair was disjoint: the test proves nothing")
	}
}

func TestEscapedTextComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		if got := Unescape(string(Escape(nil, s, "#."))); got != s {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{a}#{b|pad(3)}", "{salt(a,b;8)}", "{{x}}", "{a|revms(99)}", "{", "}", "{|}",
		"{a|hmac(k,16)}"} {
		f.Add(s)
	}
	env := &Env{Captures: []Capture{{Name: "a"}, {Name: "b", Kind: lang.Digits}}, Delim: "#", Attrs: true,
		Segments: SegStrict, Secrets: map[string][]byte{"k": {1}}}
	f.Fuzz(func(t *testing.T, src string) {
		tpl, err := New(src, env)
		if err != nil {
			return
		}
		_, _ = tpl.Append(nil, &Scope{Caps: []string{"x#", "12"}})
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("{a}#{b:d}{=a}", "x#12x")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		ast, err := lang.ParsePattern(pattern)
		if err != nil || len(pattern) > 60 || len(text) > 60 {
			return
		}
		slots := map[string]int{}
		p := NewPattern(ast, "#", func(name string) int {
			if _, ok := slots[name]; !ok {
				slots[name] = len(slots)
			}
			return slots[name]
		})
		caps := make([]string, len(slots))
		if !p.Match(text, caps) {
			return
		}
		var again strings.Builder
		for _, part := range ast {
			if part.Kind == lang.Literal {
				again.WriteString(part.Text)
			} else {
				again.WriteString(caps[slots[part.Text]])
			}
		}
		if again.String() != text {
			t.Fatalf("%q on %q: the captures give %q", pattern, text, again.String())
		}
	})
}
