package propose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// mapping writes the proposed file: an item per row, natural types, with what the sample showed as comments.
func (s *Sampler) mapping() string {
	var sb strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&sb, format+"\n", args...) }
	line("# Proposed for table %s from a sample of %d items. Edit it, then run: replicator check", s.src.Table, s.items)
	line("mapping: 1")
	line("segments: escape            # # and %% inside of a key part are written as %%23 and %%25")
	if s.mixed() {
		line("types: \"d:_types\"           # some attributes have values of several types: this cell keeps them")
	} else {
		line("# types: \"d:_types\"         # one more cell per item, so that rows can be turned back into items")
	}
	line("families:")
	line("  d: {max_versions: 1}      # names are up to 8 characters: they travel with every request")
	line("rules:")
	line("- name: item")
	match, row, keys := s.row()
	line("  match: {%s}", match)
	line("  row: \"%s\"", row)
	line("  cells:")
	line("  - {attrs: all, except: [%s], to: \"d:{attr}\"}", keys)
	s.numbers(line)
	if s.src.TTLAttr != "" {
		line("  # on_ttl_expiry: delete   # items expire by %s: delete, keep, archive (needs a place in the configuration) or archive:<family>", quoteName(s.src.TTLAttr))
	}
	s.indexes(line)
	s.entities(line)
	return sb.String()
}

func (s *Sampler) mixed() bool {
	for _, a := range s.attrs {
		if len(a.kinds) > 2 || len(a.kinds) == 2 && a.kinds[change.KindNull] == 0 {
			return true
		}
	}
	return false
}

// ref puts a key attribute into a row key: what is captured, or named.
func ref(k change.KeyAttr, name string) string {
	switch k.Type {
	case 'B':
		return "{" + name + "|hex}"
	case 'N':
		return "{" + name + "|ordnum}"
	}
	return "{" + name + "}"
}

// row is the match, the row template and the key attributes of an item per row.
func (s *Sampler) row() (match, row, keys string) {
	pk := s.src.Schema.Partition
	match, row, keys = fmt.Sprintf("%s: \"{pk}\"", quoteName(pk.Name)), ref(pk, "pk"), quoteName(pk.Name)
	if sk := s.src.Schema.Sort; sk != nil {
		match += fmt.Sprintf(", %s: \"{sk}\"", quoteName(sk.Name))
		row += "#" + ref(*sk, "sk")
		keys += ", " + quoteName(sk.Name)
	}
	return match, row, keys
}

// quoteName quotes an attribute's name for YAML where it needs it.
func quoteName(name string) string {
	plain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
	if name != "" && plain == "" && !strings.ContainsAny(name[:1], "0123456789") && !slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, strings.ToLower(name)) {
		return name
	}
	return fmt.Sprintf("%q", name)
}

// numbers suggests fixed-width integers where the sample allows them.
func (s *Sampler) numbers(line func(string, ...any)) {
	for _, name := range slices.Sorted(maps.Keys(s.attrs)) {
		a := s.attrs[name]
		if a.kinds[change.KindNumber] == a.seen && a.notInt == 0 && a.seen == s.items && !s.isKey(name) {
			line("  # - {attr: %s, to: \"n:%s\", as: int64, fallback: d}   # always a 64-bit integer in the sample; needs family n, and %s in the except list", quoteName(name), name, quoteName(name))
		}
	}
}

func (s *Sampler) indexes(line func(string, ...any)) {
	if len(s.src.Indexes) == 0 {
		return
	}
	_, main, _ := s.row()
	line("  # Secondary indexes of the table as rows that the replicator keeps (declare family x: {max_versions: 1}):")
	line("  # index:")
	for _, x := range s.src.Indexes {
		row := x.Name + "#" + ref(x.Schema.Partition, x.Schema.Partition.Name)
		if x.Schema.Sort != nil {
			row += "#" + ref(*x.Schema.Sort, x.Schema.Sort.Name)
		}
		line("  # - {name: %s, row: \"%s#%s\", cells: [{const: \"0x00\", to: \"x:k\"}]}", quoteName(x.Name), row, main)
	}
	s.views(line)
}

// views proposes the indexes once more, by columns: key attributes have none.
func (s *Sampler) views(line func(string, ...any)) {
	var lines []string
	for _, x := range s.src.Indexes {
		columns := []string{fmt.Sprintf("%q", "d:"+x.Schema.Partition.Name)}
		keyed := s.isKey(x.Schema.Partition.Name)
		if x.Schema.Sort != nil {
			columns = append(columns, fmt.Sprintf("%q", "d:"+x.Schema.Sort.Name))
			keyed = keyed || s.isKey(x.Schema.Sort.Name)
		}
		if !keyed {
			lines = append(lines, fmt.Sprintf("# - {name: %s, key: [%s]}", quoteName(x.Name), strings.Join(columns, ", ")))
		}
	}
	if len(lines) == 0 {
		return
	}
	line("# Or as materialized views that Bigtable keeps, somewhat later:")
	line("# views:")
	line("%s", strings.Join(lines, "\n"))
}

func (s *Sampler) isKey(name string) bool {
	k := s.src.Schema
	return name == k.Partition.Name || k.Sort != nil && name == k.Sort.Name
}

// entities lists the kinds of items that a single-table design seems to hold.
func (s *Sampler) entities(line func(string, ...any)) {
	var names []string
	for name, n := range s.entity {
		if n*50 >= s.items && name != "" {
			names = append(names, name)
		}
	}
	if len(names) < 2 || s.src.Schema.Sort == nil {
		return
	}
	slices.Sort(names)
	line("# Sort keys begin with %s: this looks like several kinds of items in one table.", strings.Join(names, "#, ")+"#")
	line("# A rule per kind can collect them in one row per partition key, for instance:")
	for _, n := range names {
		line("# - {name: %s, match: {%s: \"{pk}\", %s: \"%s#{id}\"}, row: \"{pk}\", cells: [{attrs: all, except: [%s, %s], to: \"d:%s/{id}/{attr}\"}]}",
			strings.ToLower(quoteless(n)), quoteName(s.src.Schema.Partition.Name), quoteName(s.src.Schema.Sort.Name), n, quoteName(s.src.Schema.Partition.Name), quoteName(s.src.Schema.Sort.Name), strings.ToLower(quoteless(n)))
	}
}

func quoteless(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '"' || r == '\\' || r == '{' || r == '}' || r < ' ' {
			return '_'
		}
		return r
	}, s)
}
