package lang

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Parse reads a mapping file. The mapping is usable only if no problem is an error; all problems of the
// file are reported at once.
func Parse(file string, data []byte) (*Mapping, []Problem) {
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		return &Mapping{File: file}, []Problem{syntaxProblem(file, err)}
	}
	n := &doc
	if n.Kind == yaml.DocumentNode {
		n = n.Content[0]
	}
	m, problems := FromNode(file, "", n)
	if slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == SeverityError }) {
		return m, problems
	}
	text, err := normalize(n)
	if err != nil {
		return m, append(problems, syntaxProblem(file, err))
	}
	m.Normal = string(text)
	return m, problems
}

func syntaxProblem(file string, err error) Problem {
	p := Problem{Severity: SeverityError, Code: "syntax", File: file, Path: "", What: "not readable as YAML: " + strings.TrimPrefix(err.Error(), "yaml: "),
		Hint: "look at indentation, at missing quotes around { } # : and at tabs"}
	if le := (*yaml.LoadError)(nil); errors.As(err, &le) {
		p.Line = le.Mark.Line
	}
	return p
}

// FromNode reads a mapping that is written inline in another file, at path.
func FromNode(file, path string, n *yaml.Node) (*Mapping, []Problem) {
	r := &reader{Problems: Problems{File: file}}
	m := &Mapping{File: file, At: Text{Line: max(n.Line, 1), Path: path}}
	if n.Kind == 0 {
		n = &yaml.Node{Kind: yaml.MappingNode, Line: 1}
	}
	version := Text{S: "1"}
	r.fields(n, path, map[string]field{
		"mapping":   r.word(&version, "1"),
		"preset":    r.word(&m.Preset, "default", "google", "document"),
		"family":    r.scalar(&m.Family),
		"presence":  r.scalar(&m.Presence),
		"delimiter": r.scalar(&m.Delimiter),
		"segments":  r.word(&m.Segments, "strict", "escape", "ordered"),
		"null":      r.word(&m.Null, "omit", "empty"),
		"types":     r.scalar(&m.Types),
		"secrets":   func(v *yaml.Node, p string) { r.pairs(&m.Secrets)(v, p); r.secrets(m) },
		"pii":       r.texts(&m.PII),
		"families":  func(v *yaml.Node, p string) { r.families(m, v, p) },
		"rules":     func(v *yaml.Node, p string) { r.rules(m, v, p) },
		"reads":     func(v *yaml.Node, p string) { r.reads(m, v, p) },
		"views":     func(v *yaml.Node, p string) { r.views(m, v, p) },
		ackKey:      r.texts(&r.acks),
	})
	m.Acknowledged = r.acks
	r.whole(m)
	return m, r.List
}

// secrets refuses keys that hide nothing.
func (r *reader) secrets(m *Mapping) {
	for _, s := range m.Secrets {
		if s.Value.S == "" || s.Value.S == "${}" {
			r.Errorf(s.Value, "secret", s.Name+": \"${ENV_NAME}\", and set the variable where the replicator runs", "secret %q is empty: everybody could compute its hashes", s.Name)
		}
	}
}

// whole checks what the parts of a file must be to each other.
func (r *reader) whole(m *Mapping) {
	if m.Preset.S == "" && len(m.Rules) == 0 && !r.Failed() {
		r.Errorf(m.At, "empty", "write `rules:`, or `preset: default`", "the mapping has no rules")
	}
	if m.Preset.S != "" && len(m.Rules) > 0 {
		r.Errorf(m.Preset, "preset", "remove one of them; the mapping reference spells the presets out", "a preset and rules exclude each other")
	}
	if p := m.Preset.S; m.Presence.Set() && p != "default" && p != "google" {
		r.Errorf(m.Presence, "preset", "in a rule write the cell yourself: {const: \"\", to: \"family:column\"}", "`presence` belongs to `preset: default` and `preset: google`")
	}
	for _, t := range []struct {
		name string
		text Text
	}{{"segments", m.Segments}, {"delimiter", m.Delimiter}} {
		if m.Preset.S != "" && t.text.Set() {
			r.Errorf(t.text, "preset", "remove it, or write the preset out as a rule", "`%s` has no effect on a preset: its row keys have one form", t.name)
		}
	}
}

func (r *reader) families(m *Mapping, n *yaml.Node, path string) {
	r.entries(n, path, func(k, v *yaml.Node, p string) {
		f := Family{At: textAt(k, p), MaxVersions: 1}
		var versions Text
		r.fields(v, p, map[string]field{
			"max_versions":         r.scalar(&versions),
			"max_age":              r.duration(&f.MaxAge),
			"combine":              r.word(&f.Combine, "union", "intersection"),
			"aggregate":            r.scalar(&f.Aggregate),
			"expires_by_timestamp": r.boolean(&f.Expires),
			"removed":              r.word(&f.Removed, "delete", "keep", "empty"),
			ackKey:                 r.texts(&r.acks),
		})
		r.versions(&f, versions)
		m.Families = append(m.Families, f)
	})
}

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
		r.Errorf(t, "gc", "combine: union collects a cell when either limit is passed, intersection when both are", "max_versions and max_age need `combine`")
	}
}

func (r *reader) rules(m *Mapping, n *yaml.Node, path string) {
	names := map[string]bool{}
	r.list(n, path, func(v *yaml.Node, p string) {
		rule := r.rule(v, p)
		if names[rule.At.S] {
			r.Errorf(rule.At, "duplicate", "give every rule a name of its own", "two rules are called %q", rule.At.S)
		}
		names[rule.At.S] = true
		m.Rules = append(m.Rules, rule)
	})
}

func (r *reader) rule(n *yaml.Node, path string) Rule {
	rule := Rule{At: Text{Line: n.Line, Path: path}}
	var name Text
	r.fields(n, path, map[string]field{
		"name":                 r.scalar(&name),
		"match":                r.conditions(&rule.Match),
		"when":                 r.scalar(&rule.When),
		"row":                  r.scalar(&rule.Row),
		"owns":                 r.word(&rule.Owns, "row", "cells"),
		"segments":             r.word(&rule.Segments, "strict", "escape", "ordered"),
		"cells":                r.emitters(&rule.Cells),
		"index":                func(v *yaml.Node, p string) { r.indexes(&rule, v, p) },
		"types":                r.scalar(&rule.Types),
		"on_remove":            r.word(&rule.OnRemove, "own", "row", "tombstone"),
		"on_ttl_expiry":        r.scalar(&rule.OnTTLExpiry),
		"drop":                 r.boolean(&rule.Drop),
		"ignore":               r.texts(&rule.Ignore),
		"may_share_cells_with": r.texts(&rule.ShareWith),
		"collisions":           r.word(&rule.Collisions, "acknowledged"),
		ackKey:                 r.texts(&r.acks),
	})
	rule.At.S = name.S
	if name.S == "" {
		rule.At.S = path
	}
	switch {
	case rule.Drop && (rule.Row.Set() || len(rule.Cells) > 0):
		r.Errorf(rule.At, "drop", "remove `row` and `cells`, or `drop`", "a rule that drops items cannot write them")
	case !rule.Drop && !rule.Row.Set():
		r.Errorf(rule.At, "row", "add `row: \"{…}\"`, or `drop: true` if these items are left out on purpose", "the rule has no row")
	}
	return rule
}

func (r *reader) conditions(to *[]Condition) field {
	return func(n *yaml.Node, path string) {
		r.entries(n, path, func(k, v *yaml.Node, p string) {
			c := Condition{At: textAt(k, p)}
			if v.Kind == yaml.ScalarNode {
				c.Pattern = textAt(v, p)
			} else {
				var exists bool
				var set bool
				r.fields(v, p, map[string]field{
					"pattern": r.scalar(&c.Pattern),
					"equals":  r.scalar(&c.Equals),
					"in":      r.texts(&c.In),
					"type":    r.word(&c.Type, "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"),
					"exists":  func(v *yaml.Node, p string) { set = true; r.boolean(&exists)(v, p) },
				})
				if set {
					c.Exists = &exists
				}
			}
			*to = append(*to, c)
		})
	}
}

func (r *reader) indexes(rule *Rule, n *yaml.Node, path string) {
	r.list(n, path, func(v *yaml.Node, p string) {
		x := Index{At: Text{Line: v.Line, Path: p}}
		var name Text
		r.fields(v, p, map[string]field{
			"name":  r.scalar(&name),
			"match": r.conditions(&x.Match),
			"when":  r.scalar(&x.When),
			"row":   r.scalar(&x.Row),
			"owns":  r.word(&x.Owns, "row", "cells"),
			"cells": r.emitters(&x.Cells),
			ackKey:  r.texts(&r.acks),
		})
		x.At.S = name.S
		if !x.Row.Set() {
			r.Errorf(x.At, "row", "add `row: \"{…}\"`", "the index has no row")
		}
		rule.Index = append(rule.Index, x)
	})
}

func (r *reader) emitters(to *[]Emitter) field {
	return func(n *yaml.Node, path string) {
		r.list(n, path, func(v *yaml.Node, p string) { *to = append(*to, r.emitter(v, p)) })
	}
}

func (r *reader) reads(m *Mapping, n *yaml.Node, path string) {
	r.list(n, path, func(v *yaml.Node, p string) {
		x := Read{At: Text{Line: v.Line, Path: p}}
		var name Text
		r.fields(v, p, map[string]field{
			"name": r.scalar(&name), "row": r.scalar(&x.Row), "prefix": r.scalar(&x.Prefix), "range": r.scalar(&x.Range),
			"family": r.scalar(&x.Family), "fold": r.word(&x.Fold, "sum", "max", "min", "count"),
			"except": r.texts(&x.Except), "of": r.scalar(&x.AccessPatternInText), ackKey: r.texts(&r.acks),
		})
		x.At.S = name.S
		m.Reads = append(m.Reads, x)
	})
}

func (r *reader) views(m *Mapping, n *yaml.Node, path string) {
	r.list(n, path, func(v *yaml.Node, p string) {
		x := View{At: Text{Line: v.Line, Path: p}}
		var name Text
		r.fields(v, p, map[string]field{"name": r.scalar(&name), "key": r.texts(&x.Key), "columns": r.texts(&x.Columns)})
		x.At.S = name.S
		m.Views = append(m.Views, x)
	})
}
