package lang

import (
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/problem/yamlfile"
)

// Parse reads a mapping file. The mapping is usable only if no problem is an error; all problems of
// the file are reported at once.
func Parse(file string, data []byte) (*Mapping, []problem.Problem) {
	r := newReader(file)
	root := r.Load(data)
	if root == nil {
		return &Mapping{File: file}, r.List
	}
	m := r.mapping(root)
	if r.Failed() {
		return m, r.List
	}
	text, err := normalize(root)
	if err != nil {
		r.Errorf(m.At, "syntax", "", "%v", err)
	}
	m.Normal = string(text)
	return m, r.List
}

// mapping reads the whole file.
func (r *reader) mapping(n *yaml.Node) *Mapping {
	m := &Mapping{File: r.File, At: Text{Line: max(n.Line, 1)}}
	version := Text{S: "1"}
	r.Fields(n, "", map[string]yamlfile.Field{
		"mapping":       r.Word(&version, "1"),
		"preset":        r.Word(&m.Preset, "default", "google", "document"),
		"family":        r.Scalar(&m.Family),
		"presence":      r.Scalar(&m.Presence),
		"delimiter":     r.Scalar(&m.Delimiter),
		"segments":      r.Word(&m.Segments, "strict", "escape", "ordered"),
		"null":          r.Word(&m.Null, "omit", "empty"),
		"types":         r.Scalar(&m.Types),
		"secrets":       func(v *yaml.Node, p string) { r.pairs(&m.Secrets)(v, p); r.checkSecrets(m) },
		"pii":           r.Texts(&m.PII),
		"families":      func(v *yaml.Node, p string) { r.families(m, v, p) },
		"rules":         func(v *yaml.Node, p string) { r.rules(m, v, p) },
		"reads":         func(v *yaml.Node, p string) { r.reads(m, v, p) },
		"views":         func(v *yaml.Node, p string) { r.views(m, v, p) },
		acknowledgedKey: r.Texts(&r.acknowledged),
	})
	m.Acknowledged = r.acknowledged
	r.checkParts(m)
	return m
}

// checkSecrets refuses empty secrets: hashes with an empty secret protect nothing.
func (r *reader) checkSecrets(m *Mapping) {
	for _, s := range m.Secrets {
		if s.Value.S == "" || s.Value.S == "${}" {
			r.Errorf(s.Value, "secret", s.Name+": \"${ENV_NAME}\", and set the variable where the replicator runs",
				"secret %q is empty, so its hashes protect nothing", s.Name)
		}
	}
}

// checkParts reports parts of the file that do not go together.
func (r *reader) checkParts(m *Mapping) {
	if m.Preset.S == "" && len(m.Rules) == 0 && !r.Failed() {
		r.Errorf(m.At, "empty", "write `rules:`, or `preset: default`", "the mapping has no rules")
	}
	if m.Preset.S != "" && len(m.Rules) > 0 {
		r.Errorf(m.Preset, "preset", "remove one of them; the mapping reference spells the presets out",
			"a preset and rules exclude each other")
	}
	if p := m.Preset.S; m.Presence.Set() && p != "default" && p != "google" {
		r.Errorf(m.Presence, "preset", "in a rule write the cell yourself: {const: \"\", to: \"family:column\"}",
			"`presence` belongs to `preset: default` and `preset: google`")
	}
	for _, t := range []struct {
		name string
		text Text
	}{{"segments", m.Segments}, {"delimiter", m.Delimiter}} {
		if m.Preset.S != "" && t.text.Set() {
			r.Errorf(t.text, "preset", "remove it, or write the preset out as a rule",
				"`%s` has no effect on a preset: its row keys have one form", t.name)
		}
	}
}

// families reads the declared column families.
func (r *reader) families(m *Mapping, n *yaml.Node, path string) {
	r.Entries(n, path, func(k, v *yaml.Node, p string) {
		f := Family{At: yamlfile.TextAt(k, p), MaxVersions: 1}
		var versions Text
		r.Fields(v, p, map[string]yamlfile.Field{
			"max_versions":         r.Scalar(&versions),
			"max_age":              r.duration(&f.MaxAge),
			"combine":              r.Word(&f.Combine, "union", "intersection"),
			"aggregate":            r.Scalar(&f.Aggregate),
			"expires_by_timestamp": r.Bool(&f.Expires),
			"removed":              r.Word(&f.Removed, "delete", "keep", "empty"),
			acknowledgedKey:        r.Texts(&r.acknowledged),
		})
		r.versions(&f, versions)
		m.Families = append(m.Families, f)
	})
}

// versions sets how many versions a family keeps: 1 by default, all if it has another limit or
// merges its cells.
func (r *reader) versions(f *Family, t Text) {
	switch {
	case t.S == "all":
		f.MaxVersions = 0
	case !t.Set():
		if f.MaxAge > 0 || f.Aggregate.S != "" {
			f.MaxVersions = 0
		}
	default:
		n, err := strconv.Atoi(t.S)
		if err != nil || n < 1 {
			r.Errorf(t, "value", "write a number from 1, or all", "max_versions: %q is not a number of versions", t.S)
			return
		}
		f.MaxVersions = n
	}
	if f.MaxVersions > 0 && f.MaxAge > 0 && f.Combine.S == "" && t.Set() {
		r.Errorf(t, "gc", "combine: union collects a cell when either limit is passed, intersection when both are",
			"max_versions and max_age need `combine`")
	}
}

// rules reads the rules. Their names must differ.
func (r *reader) rules(m *Mapping, n *yaml.Node, path string) {
	names := map[string]bool{}
	r.Elements(n, path, func(v *yaml.Node, p string) {
		rule := r.rule(v, p)
		if names[rule.At.S] {
			r.Errorf(rule.At, "duplicate", "give every rule a name of its own", "two rules have the name %q", rule.At.S)
		}
		names[rule.At.S] = true
		m.Rules = append(m.Rules, rule)
	})
}

// rule reads one rule and checks that it either writes a row or drops its items.
func (r *reader) rule(n *yaml.Node, path string) Rule {
	rule := Rule{At: Text{Line: n.Line, Path: path}}
	var name Text
	r.Fields(n, path, map[string]yamlfile.Field{
		"name":                 r.Scalar(&name),
		"match":                r.conditions(&rule.Match),
		"when":                 r.Scalar(&rule.When),
		"row":                  r.Scalar(&rule.Row),
		"owns":                 r.Word(&rule.Owns, "row", "cells"),
		"segments":             r.Word(&rule.Segments, "strict", "escape", "ordered"),
		"cells":                r.emitters(&rule.Cells),
		"index":                func(v *yaml.Node, p string) { r.indexes(&rule, v, p) },
		"types":                r.Scalar(&rule.Types),
		"on_remove":            r.Word(&rule.OnRemove, "own", "row", "tombstone"),
		"on_ttl_expiry":        r.Scalar(&rule.OnTTLExpiry),
		"drop":                 r.Bool(&rule.Drop),
		"ignore":               r.Texts(&rule.Ignore),
		"may_share_cells_with": r.Texts(&rule.ShareWith),
		"collisions":           r.Word(&rule.Collisions, "acknowledged"),
		acknowledgedKey:        r.Texts(&r.acknowledged),
	})
	rule.At.S = name.S
	if name.S == "" {
		rule.At.S = path
	}
	switch {
	case rule.Drop && (rule.Row.Set() || len(rule.Cells) > 0):
		r.Errorf(rule.At, "drop", "remove `row` and `cells`, or `drop`", "a rule that drops items cannot write them")
	case !rule.Drop && !rule.Row.Set():
		r.Errorf(rule.At, "row", "add `row: \"{…}\"`, or `drop: true` if these items are left out on purpose",
			"the rule has no row")
	}
	return rule
}

// conditions reads match: patterns and other tests, by attribute.
func (r *reader) conditions(to *[]Condition) yamlfile.Field {
	return func(n *yaml.Node, path string) {
		r.Entries(n, path, func(k, v *yaml.Node, p string) {
			c := Condition{At: yamlfile.TextAt(k, p)}
			if v.Kind == yaml.ScalarNode {
				c.Pattern = yamlfile.TextAt(v, p)
			} else {
				var exists bool
				var set bool
				r.Fields(v, p, map[string]yamlfile.Field{
					"pattern": r.Scalar(&c.Pattern),
					"equals":  r.Scalar(&c.Equals),
					"in":      r.Texts(&c.In),
					"type":    r.Word(&c.Type, "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"),
					"exists":  func(v *yaml.Node, p string) { set = true; r.Bool(&exists)(v, p) },
				})
				if set {
					c.Exists = &exists
				}
			}
			*to = append(*to, c)
		})
	}
}

// indexes reads the further rows that a rule writes.
func (r *reader) indexes(rule *Rule, n *yaml.Node, path string) {
	r.Elements(n, path, func(v *yaml.Node, p string) {
		x := Index{At: Text{Line: v.Line, Path: p}}
		var name Text
		r.Fields(v, p, map[string]yamlfile.Field{
			"name":          r.Scalar(&name),
			"match":         r.conditions(&x.Match),
			"when":          r.Scalar(&x.When),
			"row":           r.Scalar(&x.Row),
			"owns":          r.Word(&x.Owns, "row", "cells"),
			"cells":         r.emitters(&x.Cells),
			acknowledgedKey: r.Texts(&r.acknowledged),
		})
		x.At.S = name.S
		if !x.Row.Set() {
			r.Errorf(x.At, "row", "add `row: \"{…}\"`", "the index has no row")
		}
		rule.Index = append(rule.Index, x)
	})
}

func (r *reader) emitters(to *[]Emitter) yamlfile.Field {
	return func(n *yaml.Node, path string) {
		r.Elements(n, path, func(v *yaml.Node, p string) { *to = append(*to, r.emitter(v, p)) })
	}
}

// reads reads the documented access patterns.
func (r *reader) reads(m *Mapping, n *yaml.Node, path string) {
	r.Elements(n, path, func(v *yaml.Node, p string) {
		x := Read{At: Text{Line: v.Line, Path: p}}
		var name Text
		r.Fields(v, p, map[string]yamlfile.Field{
			"name": r.Scalar(&name), "row": r.Scalar(&x.Row), "prefix": r.Scalar(&x.Prefix), "range": r.Scalar(&x.Range),
			"family": r.Scalar(&x.Family), "fold": r.Word(&x.Fold, "sum", "max", "min", "count"),
			"except": r.Texts(&x.Except), "of": r.Scalar(&x.AccessPatternInText), acknowledgedKey: r.Texts(&r.acknowledged),
		})
		x.At.S = name.S
		m.Reads = append(m.Reads, x)
	})
}

func (r *reader) views(m *Mapping, n *yaml.Node, path string) {
	r.Elements(n, path, func(v *yaml.Node, p string) {
		x := View{At: Text{Line: v.Line, Path: p}}
		var name Text
		r.Fields(v, p, map[string]yamlfile.Field{"name": r.Scalar(&name), "key": r.Texts(&x.Key),
			"columns": r.Texts(&x.Columns)})
		x.At.S = name.S
		m.Views = append(m.Views, x)
	})
}
