package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// lintReads adds the access patterns to the program. It checks that each is a key, a prefix or a
// range, the only ways to read Bigtable, and that some rule writes rows of its form.
func (c *linter) lintReads() {
	for i := range c.Mapping.Reads {
		x := &c.Mapping.Reads[i]
		read := ir.ReadPattern{Name: x.At.S, Family: x.Family.S, Fold: x.Fold.S, Of: x.AccessPatternInText.S}
		given, at := 0, x.At
		for _, way := range []struct {
			how string
			key problem.Text
		}{{"row", x.Row}, {"prefix", x.Prefix}, {"range", x.Range}} {
			if way.key.Set() {
				read.How, read.Key, at = way.how, way.key.S, way.key
				given++
			}
		}
		if given != 1 {
			c.Problems.Errorf(x.At, "reads", "one of row, prefix, range", "access pattern %q names %d ways to read", x.At.S,
				given)
			continue
		}
		c.lintCells(x, &read)
		if x.Range.Set() {
			c.lintRange(x.Range)
		}
		c.lintServed(at, read)
		c.Program.Reads = append(c.Program.Reads, read)
	}
}

// lintCells checks which cells of its rows an access pattern reads.
func (c *linter) lintCells(x *lang.Read, read *ir.ReadPattern) {
	var f *ir.FamilyRule
	if x.Family.Set() {
		f = c.Family(x.Family.S, x.Family)
	}
	for _, t := range x.Except {
		read.Except = append(read.Except, t.S)
		switch {
		case !x.Family.Set():
			c.Problems.Errorf(t, "reads", "add `family:`, and columns as they stand in it",
				"`except` names columns of a family, but the access pattern names none")
		case f != nil && !slices.ContainsFunc(c.Program.Rules, func(r *ir.Rule) bool { return mayWrite(r, f, t.S) }):
			c.Problems.Warnf(t, "reads", "name a column as it stands in the table", "no rule writes column %q of family %s", t.S,
				f.Name)
		}
	}
}

// lintServed warns of an access pattern when no row has its form.
func (c *linter) lintServed(at problem.Text, read ir.ReadPattern) {
	key, _, _ := strings.Cut(read.Key, "..")
	asked, err := lang.ParseTemplate(key)
	if err != nil {
		c.Problems.Errorf(at, "template", "", "%s", err.Error())
		return
	}
	var written []string
	for _, r := range c.Program.Rules {
		for _, pl := range r.Plans {
			if row, err := lang.ParseTemplate(pl.Src.S); err == nil && serves(flat(asked), row, read.How != "row") {
				if read.How == "prefix" {
					c.lintOpenEnd(at, asked, pl)
				}
				return
			}
			written = append(written, pl.Src.S)
		}
	}
	c.Problems.Warnf(at, "reads", "rows are "+strings.Join(written,
		", ")+"; if another system writes them: acknowledged: [reads]",
		"access pattern %q looks for %q, but no rule writes such rows", read.Name, read.Key)
}

// lintOpenEnd warns of a prefix that other values of its last reference begin with too: a reader
// gets their rows with those that it asks for, which may be another tenant's.
func (c *linter) lintOpenEnd(at problem.Text, asked lang.Template, pl *ir.Plan) {
	pieces := pl.Row.Pieces()
	end := ""
	for i, part := range asked {
		last := i == len(asked)-1
		switch {
		case i >= len(pieces):
			return
		case part.String() == pieces[i].Source:
			if end = ""; part.Name == "" {
				end = "whole"
			}
		case last && part.Name == "" && pieces[i].Name == "" && strings.HasPrefix(pieces[i].Literal, part.Literal):
			end = part.Literal
		default:
			return // its key is not made of the row's parts
		}
	}
	n := len(asked)
	if end == "whole" || end == "" && n == len(pieces) {
		return // what keeps values apart follows, or nothing does
	}
	reference := n - 1
	if end != "" {
		reference--
	}
	if reference < 0 || !pieces[reference].GoesOn(end) {
		return
	}
	p := &pieces[reference]
	goesOn := "longer than the one asked for"
	if end != "" {
		goesOn = fmt.Sprintf("that goes on with %q", end)
	}
	c.Problems.Warnf(at, "reads", "end the prefix with all the text up to the next reference, or let the pattern refuse "+
		"such values: {"+p.Name+":seg}; if there are none: acknowledged: [reads]",
		"the prefix also holds rows of a %s %s", p.Source, goesOn)
}

// anything is the mark for any value in the key of an access pattern.
const anything = "\x00"

// flat returns a template as text, with every reference replaced by the mark anything.
func flat(t lang.Template) string {
	var sb strings.Builder
	for _, part := range t {
		if part.Name != "" {
			sb.WriteString(anything)
		} else {
			sb.WriteString(part.Literal)
		}
	}
	return sb.String()
}

// serves reports whether a row template can give the key or, if prefix is set, a longer key that
// begins with it.
func serves(key string, row lang.Template, prefix bool) bool {
	switch {
	case key == "":
		return prefix || len(row) == 0
	case len(row) == 0:
		return false
	case row[0].Name == "":
		if rest, ok := strings.CutPrefix(key, row[0].Literal); ok {
			return serves(rest, row[1:], prefix)
		}
		return prefix && strings.HasPrefix(row[0].Literal, key)
	}
	for n := 1; n <= len(key); n++ {
		if serves(key[n:], row[1:], prefix) {
			return true
		}
	}
	return false
}
