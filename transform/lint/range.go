package lint

import (
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// reference is the mark before and after the name of a reference in the text that byName returns.
const reference = "\x00"

// lintRange warns of ranges that may return rows of several forms, or in an unexpected order.
func (c *linter) lintRange(at problem.Text) {
	low, high, ok := strings.Cut(at.S, "..")
	if !ok {
		c.Problems.Errorf(at, "reads", "range: \"from..to\"; all rows that begin so are `prefix:`", "the range %q has no end",
			at.S)
		return
	}
	from, err := lang.ParseTemplate(low)
	if err != nil {
		return // lintServed reports it
	}
	to, err := lang.ParseTemplate(high)
	if err != nil {
		c.Problems.Errorf(at, "template", "", "%s", err.Error())
		return
	}
	shared, depth := c.sharedParts(from, to)
	var plans []*ir.Plan
	for _, r := range c.Program.Rules {
		for _, pl := range r.Plans {
			if row, err := lang.ParseTemplate(pl.Src.S); err == nil && serves(shared, row, true) && !r.Unreachable {
				plans = append(plans, pl)
			}
		}
	}
	c.lintGrammar(at, plans)
	for _, pl := range plans {
		if name, ok := c.unordered(pl, depth); ok {
			c.Problems.Warnf(at, "order", "segments: ordered sorts exactly like the parts, a part of fixed width too ({"+name+
				"|pad(10)}); if no value has such a character: acknowledged: [order]",
				"rows of %s sort by {%s}, and other parts follow: a value with a character below %q (space ! \") comes before "+
					"its shorter neighbour", pl.Name, name, c.Delimiter())
			return
		}
	}
}

// sharedParts returns the text before the first part in which two keys differ, with every reference
// replaced by the mark anything, and the number of that part.
func (c *linter) sharedParts(from, to lang.Template) (shared string, depth int) {
	a, b := byName(from), byName(to)
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	end := strings.LastIndex(a[:n], c.Delimiter())
	if end < 0 {
		return "", 0
	}
	var sb strings.Builder
	for i, piece := range strings.Split(a[:end+1], reference) {
		if i%2 == 1 {
			sb.WriteString(anything)
		} else {
			sb.WriteString(piece)
			depth += strings.Count(piece, c.Delimiter())
		}
	}
	return sb.String(), depth
}

// byName returns a template as text, with every reference as its name between two marks.
func byName(t lang.Template) string {
	var sb strings.Builder
	for _, part := range t {
		if part.Name != "" {
			sb.WriteString(reference + part.Name + reference)
		} else {
			sb.WriteString(part.Literal)
		}
	}
	return sb.String()
}

// lintGrammar warns if rows of one range have different numbers of parts: a reader cannot split all
// keys in the same way.
func (c *linter) lintGrammar(at problem.Text, plans []*ir.Plan) {
	for _, pl := range plans {
		first, n := plans[0].Row.Parts(c.Delimiter()), pl.Row.Parts(c.Delimiter())
		if n != first {
			c.Problems.Warnf(at, "mixed_grammar", "begin each kind of row, and the range, with a text of its own: "+
				"\"order#…\"; or acknowledged: [mixed_grammar]",
				"the range may hold rows of %s, whose keys have %d parts, and of %s with %d", plans[0].Name, first, pl.Name, n)
			return
		}
	}
}

// unordered returns the name of the reference in part number depth of a plan's row key, if the keys
// may sort otherwise than its values: another part follows, and a value may have a byte below the
// delimiter.
func (c *linter) unordered(pl *ir.Plan, depth int) (string, bool) {
	mode := pl.Rule.Src.Segments.S
	if mode == "" {
		mode = c.Mapping.Segments.S
	}
	if mode == tmpl.SegOrdered || depth >= pl.Row.Parts(c.Delimiter())-1 {
		return "", false
	}
	at := 0
	for _, piece := range pl.Row.Pieces() {
		if piece.Name == "" {
			at += strings.Count(piece.Literal, c.Delimiter())
		} else if at == depth && piece.Lowest < c.Delimiter()[0] {
			return piece.Name, true
		}
	}
	return "", false
}
