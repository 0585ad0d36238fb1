package transform

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/lang"
)

// ReadPattern is an access pattern that the mapping documents.
type ReadPattern struct {
	Name   string `json:"name"`
	How    string `json:"how"` // row, prefix, range
	Key    string `json:"key"`
	Family string `json:"family,omitempty"`
	Fold   string `json:"fold,omitempty"` // what the reader does with the cells: sum, max, min, count

	Except []string `json:"except,omitempty"` // columns of the family that the reader leaves out
}

// Reads lists the access patterns that the mapping documents.
func (p *Program) Reads() []ReadPattern { return p.reads }

// View is a continuous materialized view over the target table: rows by values of columns, which Bigtable keeps by
// itself and somewhat later. Rows without one of the key columns are not in it.
type View struct {
	Name    string   `json:"name"`
	Key     []Column `json:"key"`
	Columns []Column `json:"columns"`
}

// Column is a column of the target table.
type Column struct {
	Family    string `json:"family"`
	Qualifier string `json:"qualifier"`
}

// Views lists the materialized views that the mapping asks for. They are made by the administrator.
func (p *Program) Views() []View { return p.derived }

// lintReads checks that every access pattern is a key, a prefix or a range, there is no other way to read; and that
// some rule writes rows of its form.
func (c *compiler) lintReads() {
	for i := range c.m.Reads {
		x := &c.m.Reads[i]
		read := ReadPattern{Name: x.At.S, Family: x.Family.S, Fold: x.Fold.S}
		given, at := 0, x.At
		for _, way := range []struct {
			how string
			key lang.Text
		}{{"row", x.Row}, {"prefix", x.Prefix}, {"range", x.Range}} {
			if way.key.Set() {
				read.How, read.Key, at = way.how, way.key.S, way.key
				given++
			}
		}
		if given != 1 {
			c.ps.Errorf(x.At, "reads", "one of row, prefix, range", "access pattern %q names %d ways to read", x.At.S, given)
			continue
		}
		c.lintCells(x, &read)
		if x.Range.Set() {
			c.lintRange(x.Range)
		}
		c.lintServed(at, read)
		c.p.reads = append(c.p.reads, read)
	}
}

// lintCells checks which cells of its rows an access pattern reads.
func (c *compiler) lintCells(x *lang.Read, read *ReadPattern) {
	var f *family
	if x.Family.Set() {
		f = c.family(x.Family.S, x.Family)
	}
	for _, t := range x.Except {
		read.Except = append(read.Except, t.S)
		switch {
		case !x.Family.Set():
			c.ps.Errorf(t, "reads", "add `family:`, and columns as they stand in it", "`except` names columns of a family, but the access pattern names none")
		case f != nil && !slices.ContainsFunc(c.p.rules, func(r *rule) bool { return r.mayWrite(f, t.S) }):
			c.ps.Warnf(t, "reads", "name a column as it stands in the table", "no rule writes column %q of family %s", t.S, f.Name)
		}
	}
}

// lintServed says of an access pattern that no row has its form.
func (c *compiler) lintServed(at lang.Text, read ReadPattern) {
	key, _, _ := strings.Cut(read.Key, "..")
	asked, err := lang.ParseTemplate(key)
	if err != nil {
		c.ps.Errorf(at, "template", "", "%s", err.Error())
		return
	}
	var written []string
	for _, r := range c.p.rules {
		for _, pl := range r.plans {
			if row, err := lang.ParseTemplate(pl.src.S); err == nil && serves(flat(asked), row, read.How != "row") {
				return
			}
			written = append(written, pl.src.S)
		}
	}
	c.ps.Warnf(at, "reads", "rows are "+strings.Join(written, ", ")+"; if somebody else writes them: acknowledged: [reads]", "access pattern %q looks for %q, but no rule writes such rows", read.Name, read.Key)
}

// anything stands for a value in a key that is looked for.
const anything = "\x00"

// flat is a template as text, with every reference as the same mark.
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

// serves tells whether a row template can give the key, or with prefix a key that begins with it.
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

var viewName = regexp.MustCompile(`^[_a-zA-Z0-9][-_.a-zA-Z0-9]{0,127}$`)

func (c *compiler) lintViews() {
	seen := map[string]bool{}
	for i := range c.m.Views {
		x := &c.m.Views[i]
		v := View{Name: x.At.S, Key: c.columns(x.Key), Columns: c.columns(x.Columns)}
		if !viewName.MatchString(v.Name) {
			c.ps.Errorf(x.At, "views", "letters, digits, _ - and .", "%q is no name for a view", v.Name)
		}
		if seen[v.Name] {
			c.ps.Errorf(x.At, "duplicate", "give every view a name of its own", "two views are called %q", v.Name)
		}
		if len(x.Key) == 0 {
			c.ps.Errorf(x.At, "views", "key: [\"family:column\"]", "view %q has no key: by which columns shall its rows be found?", v.Name)
		}
		c.personalView(x)
		seen[v.Name] = true
		c.p.derived = append(c.p.derived, v)
	}
}

// columns resolves the columns of a view: fixed ones, that some rule may write.
func (c *compiler) columns(list []lang.Text) (out []Column) {
	for _, t := range list {
		f, qualifier, ok := c.target(t)
		switch {
		case !ok:
			continue
		case qualifier == "":
			c.ps.Errorf(t, "views", "write \"family:column\"", "%q names no column", t.S)
		case f.Aggregate != "":
			c.ps.Errorf(t, "views", "use a column of plain cells", "family %s holds aggregates", f.Name)
		case !slices.ContainsFunc(c.p.rules, func(r *rule) bool { return r.mayWrite(f, qualifier) }):
			c.ps.Errorf(t, "views", "name a column as it stands in the table", "no rule writes column %q", t.S)
		}
		out = append(out, Column{Family: f.Name, Qualifier: qualifier})
	}
	return out
}

// mayWrite reports whether a rule can write a column: one with a template counts as any column.
func (r *rule) mayWrite(f *family, qualifier string) bool {
	return slices.ContainsFunc(r.plans, func(pl *plan) bool {
		return slices.ContainsFunc(pl.emitters, func(e *Emitter) bool { return e.MayWrite(f, qualifier) })
	})
}
