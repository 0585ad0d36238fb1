package lang

import "slices"

// parts are the parts of the configuration, with the keys that only they have.
var parts = []struct {
	part string
	keys []string
}{
	{"the main file, beside the mapping: tables: [{source: …, target: …, mapping: file.yaml}]",
		[]string{"source", "target", "tables", "keys", "bigtable", "pipeline"}},
	{"the top of the mapping file",
		[]string{"preset", "presence", "delimiter", "secrets", "pii", "families", "rules", "reads", "views"}},
	{"a family, as in families: {d: {max_versions: 1}}",
		[]string{"max_versions", "max_age", "combine", "aggregate", "expires_by_timestamp", "removed"}},
	{"a rule: move it under `rules:`, as far in as its `name`",
		[]string{"match", "when", "row", "cells", "index", "on_remove", "on_ttl_expiry", "drop", "ignore",
			"may_share_cells_with"}},
	{"an entry of `cells`",
		[]string{"attr", "attrs", "map", "set", "list", "doc", "const", "to", "as", "ts", "ts_missing", "cell_id", "except",
			"rename", "flatten", "join", "format", "value", "fallback", "mode", "otherwise"}},
	{"an entry of `reads`", []string{"prefix", "range", "fold"}},
}

// partOf returns the part of the configuration that a key belongs to, or "".
func partOf(key string) string {
	for _, p := range parts {
		if slices.Contains(p.keys, key) {
			return p.part
		}
	}
	return ""
}
