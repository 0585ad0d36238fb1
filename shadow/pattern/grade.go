package pattern

import (
	"slices"

	"github.com/tailrace-cdc/replicator/transform/access"
)

// Finder returns where rows in Bigtable answer a read, with its grade; nil as for Grade.
func (r *Reader) Finder(p Pattern) *access.Finder {
	t := r.tables[p.Table]
	if p.Kind != Read || t == nil || t.Program == nil {
		return nil
	}
	q := t.query(&p)
	for _, declared := range t.Program.Reads() {
		if d, ok := parseOf(declared.Of); ok && d.is(t, &p) {
			return t.Program.Finder(q, &declared)
		}
	}
	return t.Program.Finder(q, nil)
}

// Grade returns how rows in Bigtable answer a read; nil for scans, writes and statements, and for
// tables without a mapping.
func (r *Reader) Grade(p Pattern) *access.Verdict {
	if f := r.Finder(p); f != nil {
		return &f.Verdict
	}
	return nil
}

// query returns the read that a pattern makes of the table.
func (t *Table) query(p *Pattern) access.Query {
	keys, sort := t.keys(p.Index)
	q := access.Query{Get: p.Operation != "Query", Index: p.Index, Key: keys, Rules: slices.Clone(p.Rules),
		Backward: p.Backward}
	if p.None {
		q.Rules = []access.Bound{}
	}
	for _, k := range sort {
		q.Sort = append(q.Sort, k.Name)
	}
	for _, k := range p.Key {
		q.Tests = append(q.Tests, access.Test{Attr: k.Attr, Op: k.Op})
	}
	return q
}
