package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// lintReach refuses a rule if an earlier one takes all its items.
func (c *linter) lintReach(i int, r *ir.Rule) {
	for _, earlier := range c.Program.Rules[:i] {
		if earlier.When == nil && covers(earlier.Src.Match, r.Src.Match) {
			r.Unreachable = true
			c.Problems.Errorf(r.Src.At, "unreachable", "move it before "+earlier.Name+", or remove it",
				"rule %s can never match: %s comes first and takes all its items", r.Name, earlier.Name)
			return
		}
	}
}

// covers reports whether every item that meets the conditions b also meets the conditions a.
func covers(a, b []lang.Condition) bool {
	shapeA, shapeB := shapesOf(a), shapesOf(b)
	for i := range a {
		x := &a[i]
		j := slices.IndexFunc(b, func(y lang.Condition) bool { return y.At.S == x.At.S })
		whole := x.Pattern.Set() && isWhole(x.Pattern.S) && !x.Equals.Set() && x.In == nil && !x.Type.Set() && x.Exists == nil
		if whole && (j >= 0 && (b[j].Pattern.Set() || b[j].Equals.Set())) {
			continue
		}
		if j < 0 || shapeA[i] != shapeB[j] || !sameTests(x, &b[j]) {
			return false
		}
	}
	return true
}

// isWhole reports whether a pattern is a single capture of any text.
func isWhole(pattern string) bool {
	p, err := lang.ParsePattern(pattern)
	return err == nil && len(p) == 1 && p[0].Kind == lang.Any
}

// sameTests reports whether two conditions are the same apart from their patterns; those with `in`
// never count as such.
func sameTests(a, b *lang.Condition) bool {
	exists := (a.Exists == nil) == (b.Exists == nil) && (a.Exists == nil || *a.Exists == *b.Exists)
	return exists && a.Equals.S == b.Equals.S && a.Type.S == b.Type.S && len(a.In) == 0 && len(b.In) == 0
}

// shapesOf returns the patterns of conditions without the names of captures. A back-reference is
// written as the place of its capture, so two patterns are equal even if their captures have
// different names.
func shapesOf(list []lang.Condition) (shapes []string) {
	places := map[string]string{}
	for i := range list {
		p, _ := lang.ParsePattern(list[i].Pattern.S)
		var sb strings.Builder
		for n, part := range p {
			switch part.Kind {
			case lang.Literal:
				sb.WriteString(strings.ReplaceAll(part.Text, "{", "{{"))
			case lang.Same:
				sb.WriteString("{=" + places[part.Text] + "}")
			default:
				places[part.Text] = fmt.Sprintf("%q.%d", list[i].At.S, n)
				fmt.Fprintf(&sb, "{%d}", part.Kind)
			}
		}
		shapes = append(shapes, sb.String())
	}
	return shapes
}

// lintMatch finds conditions that are probably mistakes, or that no item can meet.
func (c *linter) lintMatch(r *ir.Rule) {
	c.wrongKey(r)
	lists := [][]lang.Condition{r.Src.Match}
	for i := range r.Src.Index {
		lists = append(lists, r.Src.Index[i].Match)
	}
	for _, list := range lists {
		for i := range list {
			c.lintText(&list[i])
			c.lintNumber(&list[i])
		}
	}
}

// wrongKey refuses a rule that tests an attribute instead of the key attribute of almost the same
// name.
func (c *linter) wrongKey(r *ir.Rule) {
	for i := range r.Src.Match {
		x := &r.Src.Match[i]
		for _, key := range c.KeyNames() {
			if x.At.S == key || normalName(x.At.S) != normalName(key) || testsOrRefersTo(r, key) {
				continue
			}
			c.Problems.Errorf(x.At, "match", "match: {"+key+": …}", "match tests attribute %q, but the table's key is %q",
				x.At.S, key)
		}
	}
}

// normalName returns a name in lower case and without separators, so that spellings such as userId
// and user_id are equal.
func normalName(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(name))
}

// testsOrRefersTo reports whether a rule tests an attribute, or refers to it in a row key.
func testsOrRefersTo(r *ir.Rule, attr string) bool {
	return slices.ContainsFunc(r.Src.Match, func(x lang.Condition) bool { return x.At.S == attr }) ||
		slices.ContainsFunc(r.Plans, func(pl *ir.Plan) bool { return pl.Row.Uses[attr] })
}

// regexOrGlob matches syntax of regular expressions and globs, which has no meaning in patterns.
var regexOrGlob = regexp.MustCompile(`^\^|\$$|\.[*+]|\[[^]]+\][*+]|\\[dwsS.]|\*`)

// lintText warns of patterns in places that take plain text, and of patterns that look like regular
// expressions or globs.
func (c *linter) lintText(x *lang.Condition) {
	for _, t := range append(slices.Clone(x.In), x.Equals) {
		p, err := lang.ParsePattern(t.S)
		if err == nil && slices.ContainsFunc(p, func(part lang.PatternPart) bool { return part.Kind != lang.Literal }) {
			c.Problems.Warnf(t, "match", "a pattern stands alone: "+x.At.S+": \""+t.S+"\", in a rule of its own; for this "+
				"very text: acknowledged: [match]", "%q is compared as text, with its braces: nothing is captured", t.S)
		}
	}
	if found := regexOrGlob.FindString(x.Pattern.S); found != "" && !strings.Contains(found, "{") {
		c.Problems.Warnf(x.Pattern, "match", "{x} takes any text, {x:d} digits; for this very text: acknowledged: [match]",
			"%q is compared as text: %q stands for itself", x.Pattern.S, found)
	}
}

// lintNumber refuses comparisons of a number with a text that is not DynamoDB's form of a number.
func (c *linter) lintNumber(x *lang.Condition) {
	if x.Type.S != "N" && c.KeyTypes()[x.At.S] != 'N' {
		return
	}
	for _, t := range append(slices.Clone(x.In), x.Equals) {
		if !t.Set() {
			continue
		}
		if canonical, err := change.CanonicalNumber(t.S); err != nil {
			c.Problems.Errorf(t, "match", "write a number", "%s is a number: it is never %q", x.At.S, t.S)
		} else if canonical != t.S {
			c.Problems.Errorf(t, "match", "write \""+canonical+"\"", "numbers are compared in their plain form: %s is never %q",
				x.At.S, t.S)
		}
	}
	p, _ := lang.ParsePattern(x.Pattern.S)
	for _, part := range p {
		if part.Kind == lang.Literal && strings.Trim(part.Text, "0123456789-+.E") != "" {
			c.Problems.Errorf(x.Pattern, "match", "{x} takes the whole number", "%s is a number: it never holds %q", x.At.S,
				part.Text)
		}
	}
}
