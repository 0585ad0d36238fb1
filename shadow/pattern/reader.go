package pattern

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// Table is what is known of a table.
type Table struct {
	Name    string
	Schema  change.KeySchema
	Indexes []Index
	Program *transform.Program // nil without a mapping
}

// Index is a secondary index of a table.
type Index struct {
	Name      string
	Partition []change.KeyAttr
	Sort      []change.KeyAttr
}

// Reader reads requests. The zero Reader has no description of any table. It is safe for concurrent
// use.
type Reader struct{ tables map[string]*Table }

// NewReader returns a reader with descriptions of tables: their keys give the order of conditions,
// their mappings the rules.
func NewReader(tables ...Table) *Reader {
	r := &Reader{tables: map[string]*Table{}}
	for i := range tables {
		r.tables[tables[i].Name] = &tables[i]
	}
	return r
}

// keys returns the key of the table or of an index, the partition key first, and its sorting part;
// nil if it is not known.
func (t *Table) keys(index string) (all, sort []change.KeyAttr) {
	if t == nil {
		return nil, nil
	}
	if index == "" {
		all = []change.KeyAttr{t.Schema.Partition}
		if t.Schema.Sort != nil {
			all, sort = append(all, *t.Schema.Sort), []change.KeyAttr{*t.Schema.Sort}
		}
		return all, sort
	}
	i := slices.IndexFunc(t.Indexes, func(x Index) bool { return x.Name == index })
	if i < 0 {
		return nil, nil
	}
	x := &t.Indexes[i]
	return slices.Concat(x.Partition, x.Sort), x.Sort
}

// nameRunes are the characters of names of tables and indexes.
const nameRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// tableName returns the name of a table, which a request gives as such or as an ARN; ok is false
// where it is neither.
func tableName(text string) (name string, ok bool) {
	if strings.HasPrefix(text, "arn:") {
		_, text, _ = strings.Cut(text, ":table/")
		text, _, _ = strings.Cut(text, "/")
	}
	return text, isName(text)
}

// isName reports whether a text can be the name of a table or index.
func isName(text string) bool {
	return len(text) >= 3 && len(text) <= 255 && strings.Trim(text, nameRunes) == ""
}

// maxKeyName is the length of the longest name of a key attribute.
const maxKeyName = 255

// value returns a value of a request as mappings read it; ok is false if it cannot be part of a
// key.
func value(v *attr.Value) (out change.Value, ok bool) {
	switch v.Kind {
	case attr.S:
		return change.Value{Kind: change.KindString, S: v.Str}, true
	case attr.N:
		return change.Value{Kind: change.KindNumber, S: v.Str}, true
	case attr.B:
		return change.Value{Kind: change.KindBinary, S: base64.StdEncoding.EncodeToString([]byte(v.Str))}, true
	}
	return out, false
}

// setKey sets the key condition of a pattern, in the order of the key, and the rules that its
// values leave. ok is false if the table or index has another key.
func (r *Reader) setKey(p *Pattern, tests []access.Test) (ok bool) {
	t := r.tables[p.Table]
	keys, _ := t.keys(p.Index)
	place := func(x access.Test) int {
		return slices.IndexFunc(keys, func(k change.KeyAttr) bool { return k.Name == x.Attr })
	}
	for _, x := range tests {
		if len(x.Attr) > maxKeyName || keys != nil && place(x) < 0 {
			return false
		}
	}
	slices.SortStableFunc(tests, func(a, b access.Test) int {
		if keys != nil {
			return place(a) - place(b)
		}
		if (a.Op == access.Equal) != (b.Op == access.Equal) {
			if a.Op == access.Equal {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Attr, b.Attr)
	})
	p.Key = nil
	for _, x := range tests {
		p.Key = append(p.Key, Key{Attr: x.Attr, Op: x.Op})
	}
	if t != nil && t.Program != nil {
		p.addRules(t.Program, t.Program.RulesOf(tests))
	}
	return true
}

// addRules adds rules to the pattern, in the order of the mapping.
func (p *Pattern) addRules(program *transform.Program, rules []access.Bound) {
	all := program.Rules()
	place := func(b access.Bound) int {
		return slices.IndexFunc(all, func(n transform.RuleName) bool { return n.Name == b.Rule })
	}
	for _, b := range rules {
		if !slices.ContainsFunc(p.Rules, func(o access.Bound) bool { return o.Rule == b.Rule }) {
			p.Rules = append(p.Rules, b)
		}
	}
	slices.SortStableFunc(p.Rules, func(a, b access.Bound) int { return place(a) - place(b) })
	p.Any, p.None = len(all) > 1 && len(p.Rules) == len(all), len(p.Rules) == 0
}
