package lang

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// sources are the forms that an emitter can take its cells from; it has exactly one.
var sources = []string{"attr", "attrs", "map", "set", "list", "doc", "const"}

func (r *reader) emitter(n *yaml.Node, path string) Emitter {
	e := Emitter{At: Text{Line: n.Line, Path: path}}
	var forms []string
	source := func(kind string, f field) field {
		return func(v *yaml.Node, p string) {
			forms = append(forms, kind)
			e.Kind = kind
			f(v, p)
		}
	}
	r.fields(n, path, map[string]field{
		"attr":       source("attr", r.scalar(&e.Name)),
		"attrs":      source("attrs", r.names(&e)),
		"map":        source("map", r.scalar(&e.Name)),
		"set":        source("set", r.scalar(&e.Name)),
		"list":       source("list", r.scalar(&e.Name)),
		"doc":        source("doc", r.document(&e)),
		"const":      source("const", r.scalar(&e.Name)),
		"except":     r.texts(&e.Except),
		"rename":     r.pairs(&e.Rename),
		"to":         r.scalar(&e.To),
		"as":         r.word(&e.As, "natural", "text", "raw", "decimal", "int64", "float64", "bool1", "json", "dynamo_json", "protobuf", "google"),
		"ts":         r.scalar(&e.TS),
		"ts_missing": r.word(&e.TSMissing, "refuse", "version", "skip", "never"),
		"cell_id":    r.word(&e.CellID, "ts"),
		"collisions": r.word(&e.Collisions, "acknowledged"),
		"flatten":    r.word(&e.Flatten, "maps"),
		"join":       r.scalar(&e.Join),
		"format":     r.word(&e.Format, "json", "dynamo_json", "raw", "protobuf"),
		"value":      r.scalar(&e.Value),
		"null":       r.word(&e.Null, "omit", "empty"),
		"fallback":   r.scalar(&e.Fallback),
		"mode":       r.word(&e.Mode, "columns", "versions"),
		"otherwise":  r.scalar(&e.Otherwise),
	})
	r.checkEmitter(&e, forms)
	return e
}

func (r *reader) names(e *Emitter) field {
	return func(v *yaml.Node, path string) {
		if v.Kind == yaml.ScalarNode {
			if v.Value != "all" {
				r.Errorf(textAt(v, path), "value", "write `attrs: all` or `attrs: [a, b]`; one attribute is `attr: a`", "%q is not a list of attributes", v.Value)
			}
			e.All = true
			return
		}
		r.texts(&e.Names)(v, path)
	}
}

func (r *reader) document(e *Emitter) field {
	return func(v *yaml.Node, path string) {
		if v.Kind == yaml.ScalarNode && v.Value == "all" {
			e.All = true
			return
		}
		inner := Emitter{}
		r.fields(v, path, map[string]field{"attrs": r.names(&inner), "except": r.texts(&inner.Except)})
		e.All, e.Names, e.Except = inner.All || len(inner.Names) == 0, inner.Names, inner.Except
	}
}

// allowed lists the options that only some sources know.
var allowed = map[string][]string{
	"except": {"attrs", "doc"}, "rename": {"attrs", "doc"}, "flatten": {"attrs", "attr", "map"}, "join": {"attrs", "attr", "map"},
	"format": {"doc"}, "value": {"set"}, "mode": {"list"}, "otherwise": {"map", "set", "list"},
}

func (r *reader) checkEmitter(e *Emitter, forms []string) {
	switch {
	case len(forms) == 0:
		r.Errorf(e.At, "source", "one of: "+strings.Join(sources, ", "), "the cell has no source")
		return
	case len(forms) > 1:
		r.Errorf(e.At, "source", "split it into one entry per source", "the cell has several sources: %s", strings.Join(forms, ", "))
		return
	}
	if !e.To.Set() {
		r.Errorf(e.At, "to", "add `to: \"family:qualifier\"`", "the cell has no target column")
	}
	given := map[string]bool{"except": len(e.Except) > 0, "rename": len(e.Rename) > 0, "flatten": e.Flatten.Set(), "join": e.Join.Set(),
		"format": e.Format.Set(), "value": e.Value.Set(), "mode": e.Mode.Set(), "otherwise": e.Otherwise.Set()}
	for _, option := range []string{"except", "rename", "flatten", "join", "format", "value", "mode", "otherwise"} {
		if given[option] && !contains(allowed[option], e.Kind) {
			r.Errorf(e.At, "option", "it belongs to: "+strings.Join(allowed[option], ", "), "`%s` has no meaning for `%s`", option, e.Kind)
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
