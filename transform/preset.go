package transform

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// preset spells a preset out as a mapping for one table. The preset default is total and injective: it
// takes every item, and two items never share a row.
func preset(name string, m *Mapping, schema change.KeySchema) *Mapping {
	family := map[string]string{"default": "d", "google": "cf1", "document": "d"}[name]
	if m.Family.S != "" {
		family = m.Family.S
	}
	out := *m
	out.Preset = lang.Text{}
	rule := lang.Rule{At: lang.Text{S: name, Line: m.At.Line, Path: "preset"}}
	row, match, keys := defaultRow(schema)
	rule.Match, rule.Row.S = match, row
	e := lang.Emitter{At: lang.Text{Line: m.At.Line, Path: "preset"}, Kind: "attrs", All: true, Except: keys, To: text(family + ":{attr}")}
	f := lang.Family{At: text(family), MaxVersions: 1}
	switch name {
	case "google":
		rule.Row.S = "{" + schema.Partition.Name + "}"
		rule.Match = []lang.Condition{{At: text(schema.Partition.Name), Pattern: text("{pk}")}}
		rule.Row.S = "{pk}"
		e.Except = keys[:1]
		e.To, e.Flatten, e.Join, e.As, e.TS, e.Null = text(family+":{path}"), text("maps"), text("."), text("google"), text("0"), text("empty")
		f.MaxVersions = 0
	case "document":
		e = lang.Emitter{At: e.At, Kind: "doc", All: true, To: text(family + ":j"), Format: text("dynamo_json")}
	}
	if len(out.Families) == 0 {
		out.Families = []lang.Family{f}
	}
	rule.Cells = []lang.Emitter{e}
	rule.Segments = text("escape")
	out.Rules = []lang.Rule{rule}
	return &out
}

func text(s string) lang.Text { return lang.Text{S: s} }

// defaultRow is the partition key with # and % escaped, "#", and the sort key as it is. A partition key
// that stands alone needs no escaping.
func defaultRow(schema change.KeySchema) (row string, match []lang.Condition, keys []lang.Text) {
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
