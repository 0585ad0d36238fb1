package propose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// proposed is one rule of the proposal: an item becomes a row.
type proposed struct {
	name, match string
	lead        string // prefix that separates its rows from those of indexes
	row         string // without the lead
	keys        string
	indexed     map[string]int // nil: any index may hold its items
	comment     string
}

// writer writes the proposed file.
type writer struct {
	strings.Builder
	s       *Sampler
	indexed bool // the comment that explains index rows is written
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// mapping returns the proposed file: an item per row, natural encodings, and as comments what the
// sample showed. Lines that are commented out compile when the # is removed, and leave the rows in
// class R (replace-row).
func (s *Sampler) mapping() string {
	w := &writer{s: s}
	w.line("# Proposed for table %s from a sample of %s. Edit it, then run: replicator check",
		s.src.Table, count(s.items, "item"))
	w.line("mapping: 1")
	w.line("segments: escape            # # and %% inside of a key part are written as %%23 and %%25")
	sign := "# "
	if s.mixed() {
		sign = ""
		w.line("types: \"t:types\"            # some attributes have values of several types: this cell keeps them")
	} else {
		w.line("# types: \"t:types\"          # one more cell per item, so that rows can be turned back into items")
	}
	w.line("families:")
	w.line("  d: {max_versions: 1}      # names are up to 8 characters: every request contains them")
	w.line("  %st: {max_versions: 1}      # for types", sign)
	if len(s.src.Indexes) > 0 {
		w.line("  # x: {max_versions: 1}      # for rows of indexes")
	}
	if len(s.integers()) > 0 {
		w.line("  # n: {max_versions: 1}      # for 64-bit integers")
	}
	w.line("rules:")
	for i, r := range s.rules() {
		w.rule(&r, i == 0)
	}
	w.views()
	return w.String()
}

// rule writes one rule; comments that hold for all rules stand at the first.
func (w *writer) rule(r *proposed, first bool) {
	if r.comment != "" {
		w.line("# %s", r.comment)
	}
	w.line("- name: %s", access.Quote(r.name))
	w.line("  match: {%s}", r.match)
	if first && r.lead != "" {
		w.line("  row: \"%s\"   # %s keeps items apart from rows of indexes", r.lead+r.row, r.lead)
	} else {
		w.line("  row: \"%s\"", r.lead+r.row)
	}
	w.line("  cells:")
	w.line("  - {attrs: all, except: [%s], to: \"d:{attr}\"}", r.keys)
	for _, name := range w.s.integers() {
		if !first {
			break
		}
		w.line("  # - {attr: %s, to: \"n:%s\", as: int64, fallback: d}   # always a 64-bit integer in the sample; needs "+
			"family n, and %s in the except list", access.Quote(name), name, access.Quote(name))
	}
	if ttl := w.s.src.TTLAttr; first && ttl != "" {
		w.line("  # on_ttl_expiry: delete   # items expire by %s: delete, keep, archive (needs a place in the "+
			"configuration) or archive:<family>", access.Quote(ttl))
	}
	w.indexes(r)
}

// indexes writes the table's indexes as commented-out rows of a rule, each with the name of its
// index as prefix.
func (w *writer) indexes(r *proposed) {
	var lines []string
	for _, x := range w.s.src.Indexes {
		if r.indexed != nil && r.indexed[x.Name] == 0 {
			continue
		}
		row := access.IndexTemplate(w.s.lead(x.Name, x.Name), x.Key, "#", r.row)
		lines = append(lines, "  # - "+access.IndexEntry(x.Name, row, "x"))
	}
	if len(lines) == 0 {
		return
	}
	if !w.indexed {
		w.indexed = true
		w.line("  # Secondary indexes of the table as rows that the replicator keeps, in family x:")
	}
	w.line("  # index:\n%s", strings.Join(lines, "\n"))
}

// views proposes the indexes as materialized views too, unless they have key attributes, which are
// not columns.
func (w *writer) views() {
	var lines []string
	for _, x := range w.s.src.Indexes {
		var columns []string
		keyed := false
		for _, k := range x.Key {
			columns = append(columns, fmt.Sprintf("%q", "d:"+k.Name))
			keyed = keyed || w.s.isKey(k.Name)
		}
		if !keyed {
			lines = append(lines, fmt.Sprintf("# - {name: %s, key: [%s]}", access.Quote(x.Name), strings.Join(columns, ", ")))
		}
	}
	if len(lines) == 0 {
		return
	}
	w.line("# Or as materialized views that Bigtable maintains, somewhat later:")
	w.line("# views:\n%s", strings.Join(lines, "\n"))
}

// mixed reports whether an attribute has values of several types other than NULL.
func (s *Sampler) mixed() bool {
	for _, a := range s.attrs {
		if len(a.kinds) > 2 || len(a.kinds) == 2 && a.kinds[change.KindNull] == 0 {
			return true
		}
	}
	return false
}

// integers returns the attributes that every item has, always as a 64-bit integer.
func (s *Sampler) integers() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(s.attrs)) {
		a := s.attrs[name]
		if a.kinds[change.KindNumber] == a.seen && a.notInt == 0 && a.seen == s.items && !s.isKey(name) {
			out = append(out, name)
		}
	}
	return out
}
