package access

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestRulesOfTests holds which rules remain, and what is shown of their captures.
func TestRulesOfTests(t *testing.T) {
	d := design{"p s", "", `{p: "U#{u}", s: INFO} → u#{u}#i ; {p: "U#{u}", s: "O#{day}/{n:d}"} → u#{u}#o#{day}#{n} ;` +
		` {p: "{p}", s: "{s}"} → r#{p}#{s}`}
	p := d.compiled(t)
	text := func(s string) []change.Value { return []change.Value{{Kind: change.KindString, S: s}} }
	user := Test{Attr: "p", Op: Equal, Values: text("U#1")}
	between := func(low, high string) Test {
		return Test{Attr: "s", Op: Between, Values: append(text(low), text(high)...)}
	}
	for _, c := range []struct {
		tests []Test
		want  string
	}{
		{[]Test{user}, "r0 u= | r1 u= | r2 p="},
		{[]Test{{Attr: "p", Op: Equal}}, "r0 u= | r1 u= | r2 p="},
		{[]Test{{Attr: "p", Op: Equal, Values: text("G#1")}}, "r2 p="},
		{[]Test{user, {Attr: "s", Op: Equal, Values: text("INFO")}}, "r0 u="},
		{[]Test{user, {Attr: "s", Op: Equal, Values: text("O#a/1")}}, "r1 day= n= u="},
		{[]Test{user, {Attr: "s", Op: Equal, Values: text("O#a/b")}}, "r2 p= s="},
		{[]Test{user, {Attr: "s", Op: BeginsWith, Values: text("I")}}, "r0 u= | r2 p= s_begins"},
		{[]Test{user, {Attr: "s", Op: BeginsWith, Values: text("O#")}}, "r1 u= | r2 p= s_begins"},
		{[]Test{user, {Attr: "s", Op: BeginsWith, Values: text("O#a")}}, "r1 day_begins u= | r2 p= s_begins"},
		{[]Test{user, {Attr: "s", Op: BeginsWith, Values: text("O#a/")}}, "r1 day? n? u= | r2 p= s_begins"},
		{[]Test{user, {Attr: "s", Op: BeginsWith}}, "r0 u= | r1 day? n? u= | r2 p= s_begins"},
		{[]Test{user, between("O#a", "O#b")}, "r1 day_range u= | r2 p= s_range"},
		{[]Test{user, between("A", "Z")}, "r0 u= | r1 u= | r2 p= s_range"},
		{[]Test{user, {Attr: "s", Op: More, Values: text("INFO")}}, "r1 u= | r2 p= s_range"},
		{[]Test{user, {Attr: "s", Op: MoreEqual, Values: text("INFO")}}, "r0 u= | r1 u= | r2 p= s_range"},
		{[]Test{user, {Attr: "s", Op: Less, Values: text("O#a")}}, "r0 u= | r1 day_range u= | r2 p= s_range"},
	} {
		var got []string
		for _, b := range Rules(p, c.tests) {
			shown := []string{b.Rule}
			for _, name := range []string{"day", "n", "p", "s", "u"} {
				if how := b.Captures[name]; how != "" {
					shown = append(shown, name+map[How]string{Is: "=", Begins: "_begins", Within: "_range", Limited: "?"}[how])
				}
			}
			got = append(got, strings.Join(shown, " "))
		}
		if joined := strings.Join(got, " | "); joined != c.want {
			t.Errorf("%v:\n\t%s\n\twant %s", c.tests, joined, c.want)
		}
	}
}
