package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/compile"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Reference returns the reference that puts a key attribute into a row key, by the name of its
// capture or its own: numbers so that they sort by their size, binary so that tools can show it.
func Reference(k change.KeyAttr, name string) string {
	switch k.Type {
	case 'B':
		return "{" + name + "|hex}"
	case 'N':
		return "{" + name + "|ordnum}"
	}
	return "{" + name + "}"
}

// IndexTemplate returns the row template of an index: a lead that keeps its rows apart, the
// index's key, and what identifies the item.
func IndexTemplate(lead string, keys []change.KeyAttr, separator, row string) string {
	var sb strings.Builder
	sb.WriteString(lead)
	for i, k := range keys {
		sb.WriteString(Reference(k, k.Name))
		if i < len(keys)-1 || row != "" {
			sb.WriteString(separator)
		}
	}
	return sb.String() + row
}

// IndexEntry returns an index row as an entry of `index`. Its only cell marks that the item is
// there: readers take the item from its main row.
func IndexEntry(name, row, family string) string {
	return fmt.Sprintf(`{name: %s, row: %q, cells: [{const: "0x00", to: "%s:k"}]}`, Quote(name), row, family)
}

// Quote quotes a name if YAML needs it.
func Quote(name string) string {
	plain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
	if name != "" && plain == "" && !strings.ContainsAny(name[:1], "0123456789") &&
		!slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, strings.ToLower(name)) {
		return name
	}
	return fmt.Sprintf("%q", name)
}

// propose returns the index rows that would serve a read without one, one for each of its rules.
// They are proposed only if the mapping compiles with them and the read is then served. why is the
// reason where it is not.
func propose(p *ir.Program, q *Query, rules []*ir.Rule) (rows []IndexRow, why string) {
	m := p.Table.Mapping
	switch {
	case m == nil || m.Preset.S != "":
		return nil, "a preset has no index rows: `replicator init` writes rules that can have some"
	case q.Key == nil:
		return nil, "the key of index " + q.Index + " is not known"
	}
	name := q.Index
	if name == "" {
		name = "by_" + q.Key[0].Name
	}
	failed := func(x problem.Problem) bool { return x.Severity == problem.SeverityError }
	for _, ends := range endsOf(p, q, rules) {
		for _, lead := range leads(p, name) {
			var problems []problem.Problem
			if rows, problems = tryIndex(p, q, rules, name, lead, ends); rows != nil {
				return rows, ""
			}
			if i := slices.IndexFunc(problems, failed); i >= 0 {
				why = "no index row for it compiles: " + problems[i].What
			}
		}
	}
	if why == "" {
		why = "an index row by its key would not serve it either"
	}
	return nil, why
}

// leads returns words that rows of an index may begin with, those first that no other row does.
func leads(p *ir.Program, name string) (out []string) {
	delimiter := "#"
	if d := p.Table.Mapping.Delimiter.S; d != "" {
		delimiter = d
	}
	word := strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c|32 >= 'a' && c|32 <= 'z' || strings.ContainsRune("_.-", c) {
			return c
		}
		return '_'
	}, name)
	var shared []string
	for _, lead := range []string{word + delimiter, word + "." + delimiter, "index." + word + delimiter} {
		shape := tmpl.Beginnings(lead)
		if slices.ContainsFunc(p.Rules, func(r *ir.Rule) bool {
			return slices.ContainsFunc(r.Plans, func(pl *ir.Plan) bool { return tmpl.Overlap(shape, pl.Row.Shape) })
		}) {
			shared = append(shared, lead)
			continue
		}
		out = append(out, lead)
	}
	return append(out, shared...)
}

// tryIndex adds an index row to rules of the mapping, compiles it and judges the read again. It
// returns the rows if they serve the read, else the compiler's problems.
func tryIndex(
	p *ir.Program, q *Query, rules []*ir.Rule, name, lead string, ends []string,
) ([]IndexRow, []problem.Problem) {
	m := *p.Table.Mapping
	m.Rules = slices.Clone(m.Rules)
	m.Families = slices.Clone(m.Families)
	family, declare := indexFamily(p)
	if declare {
		m.Families = append(m.Families, lang.Family{At: problem.Text{S: family}, MaxVersions: 1})
	}
	var rows []IndexRow
	for at, r := range rules {
		i := slices.IndexFunc(m.Rules, func(x lang.Rule) bool { return x.At.S == r.Name })
		if i < 0 {
			return nil, nil
		}
		row := IndexTemplate(lead, q.Key, separator(p, r), ends[at])
		entry := IndexRow{Rule: r.Name, Entry: IndexEntry(name, row, family)}
		if declare {
			entry.Family = family + ": {max_versions: 1}"
		}
		rows = append(rows, entry)
		m.Rules[i].Index = append(slices.Clone(m.Rules[i].Index), lang.Index{At: problem.Text{S: name},
			Row: problem.Text{S: row}, Cells: []lang.Emitter{{Kind: "const", Name: problem.Text{S: "0x00"},
				To: problem.Text{S: family + ":k"}}}})
	}
	t := p.Table
	t.Mapping = &m
	compiled, problems := compile.All([]ir.Table{t})
	if compiled[0] == nil {
		return nil, problems
	}
	again := *q
	if v, _ := again.best(compiled[0], rulesNamed(compiled[0], rules)); rank[v.Grade] <= rank[OrderDiffers] {
		return rows, nil
	}
	return nil, nil
}

// endsOf returns what the index rows of each rule may end with, so that each row has one item. One
// rule: its main row. Several rules: the table's key, which also sorts them as DynamoDB does. Where
// that does not compile, their main rows: a rule that takes all other items has rows of its own.
func endsOf(p *ir.Program, q *Query, rules []*ir.Rule) [][]string {
	var main, keys []string
	s := p.Table.Schema
	key := []change.KeyAttr{s.Partition}
	if s.Sort != nil {
		key = append(key, *s.Sort)
	}
	for _, r := range rules {
		main, keys = append(main, r.Src.Row.S), append(keys, IndexTemplate("", key, separator(p, r), ""))
	}
	switch {
	case q.Index == "": // the row has the whole key
		return [][]string{make([]string, len(rules))}
	case len(rules) == 1:
		return [][]string{main}
	}
	return [][]string{keys, main}
}

// rulesNamed returns the rules of another program with the same names.
func rulesNamed(p *ir.Program, rules []*ir.Rule) (out []*ir.Rule) {
	for _, r := range rules {
		i := slices.IndexFunc(p.Rules, func(o *ir.Rule) bool { return o.Name == r.Name })
		out = append(out, p.Rules[i])
	}
	return out
}

// separator returns what separates the parts of an index row. With strict segments a value with the
// separator is refused, so it is one that keys seldom have.
func separator(p *ir.Program, r *ir.Rule) string {
	m := p.Table.Mapping
	delimiter, mode := "#", r.Src.Segments.S
	if m.Delimiter.S != "" {
		delimiter = m.Delimiter.S
	}
	if mode == "" {
		mode = m.Segments.S
	}
	if mode == tmpl.SegEscape || mode == tmpl.SegOrdered {
		return delimiter
	}
	return delimiter + delimiter
}

// indexFamily returns the family for cells of index rows: x, or another name if x holds merged or
// expiring cells; declare, if the mapping lacks it.
func indexFamily(p *ir.Program) (name string, declare bool) {
	for _, name = range []string{"x", "ix"} {
		i := slices.IndexFunc(p.FamilyRules, func(f *ir.FamilyRule) bool { return f.Name == name })
		if i < 0 {
			return name, true
		}
		if f := p.FamilyRules[i]; f.Aggregate == "" && !f.Expires && f.MaxVersions == 1 {
			return name, false
		}
	}
	return "index", true
}
