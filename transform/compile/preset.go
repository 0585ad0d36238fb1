package compile

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// preset spells a preset out as a mapping for one table. The preset default takes every item, and
// two items never share a row.
func preset(name string, m *ir.Mapping, schema change.KeySchema) *ir.Mapping {
	family := map[string]string{"default": "d", "google": "cf1", "document": "d"}[name]
	if m.Family.S != "" {
		family = m.Family.S
	}
	out := *m
	out.Preset = problem.Text{}
	// Problems with the preset's entries are reported at the line of `preset`.
	text := func(s string) problem.Text { return problem.Text{S: s, Line: m.Preset.Line, Path: "preset"} }
	rule := lang.Rule{At: text(name)}
	row, match, keys := defaultRow(schema, text)
	rule.Match, rule.Row = match, text(row)
	e := lang.Emitter{At: text(""), Kind: "attrs", All: true, Except: keys, To: text(family + ":{attr}")}
	f := lang.Family{At: text(family), MaxVersions: 1}
	switch name {
	case "google":
		rule.Match = []lang.Condition{{At: text(schema.Partition.Name), Pattern: text("{pk}")}}
		rule.Row.S = "{pk}"
		e.Except = keys[:1]
		e.To, e.Flatten, e.Join, e.As, e.TS, e.Null = text(family+":{path}"), text("maps"), text("."), text("google"),
			text("0"), text("empty")
		f.MaxVersions = 0
	case "document":
		e = lang.Emitter{At: e.At, Kind: "doc", All: true, To: text(family + ":j"), Format: text("dynamo_json")}
	}
	// Other families may be declared beside the preset; its own is added unless the mapping
	// declares it too.
	if !slices.ContainsFunc(out.Families, func(f lang.Family) bool { return f.At.S == family }) {
		out.Families = append(slices.Clip(out.Families), f)
	}
	rule.Cells = []lang.Emitter{e}
	if m.Presence.Set() {
		at := problem.Text{Line: m.Presence.Line, Path: "presence"}
		rule.Cells = append(rule.Cells, lang.Emitter{At: at, Kind: "const", To: text(family + ":" + m.Presence.S), TS: e.TS})
	}
	rule.Segments = text("escape")
	out.Rules = []lang.Rule{rule}
	return &out
}

// defaultRow returns the row template of the preset default, its conditions and the key attributes:
// the partition key with # and % escaped, "#", and the sort key as it is. A partition key without a
// sort key needs no escaping.
func defaultRow(schema change.KeySchema, text func(string) problem.Text) (row string, match []lang.Condition,
	keys []problem.Text) {
	part := func(k change.KeyAttr, capture string) string {
		match = append(match, lang.Condition{At: text(k.Name), Pattern: text("{" + capture + "}")})
		keys = append(keys, text(k.Name))
		if k.Type == 'B' {
			return "{" + capture + "|hex}"
		}
		return "{" + capture + "}"
	}
	row = part(schema.Partition, "pk")
	if schema.Sort != nil {
		row += "#" + part(*schema.Sort, "sk")
	}
	return row, match, keys
}
