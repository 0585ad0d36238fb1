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
		line("  on_ttl_expiry: archive    # items expire by %s: delete, keep, archive or archive:<family>", quoteName(s.src.TTLAttr))
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

// row is the match, the row template and the key attributes of an item per row.
func (s *Sampler) row() (match, row, keys string) {
	ref := func(k change.KeyAttr, capture string) string {
		switch k.Type {
		case 'B':
			return "{" + capture + "|hex}"
		case 'N':
			return "{" + capture + "|ordnum}"
		}
		return "{" + capture + "}"
	}
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
		if a.kinds[change.KindNumber] == a.seen && a.notInt == 0 && a.seen == s.items && name != s.src.Schema.Partition.Name && (s.src.Schema.Sort == nil || name != s.src.Schema.Sort.Name) {
			line("  # - {attr: %s, to: \"n:%s\", as: int64, fallback: d}   # always a 64-bit integer in the sample; needs family n, and %s in the except list", quoteName(name), name, quoteName(name))
		}
	}
}

func (s *Sampler) indexes(line func(string, ...any)) {
	if len(s.src.Indexes) == 0 {
		return
	}
	line("  # Secondary indexes of the table, as rows that the replicator keeps (families x: {max_versions: 1}).")
	line("  # index:")
	for _, x := range s.src.Indexes {
		row := x.Name + "#{" + x.Schema.Partition.Name + "}"
		if x.Schema.Sort != nil {
			row += "#{" + x.Schema.Sort.Name + "}"
		}
		row += "#{pk}"
		if s.src.Schema.Sort != nil {
			row += "#{sk}"
		}
		line("  # - {name: %s, row: \"%s\", cells: [{const: \"0x00\", to: \"x:k\"}]}", x.Name, row)
	}
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
