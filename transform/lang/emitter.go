package lang

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem/yamlfile"
)

// sources are the forms that an emitter can take its cells from; it has exactly one.
var sources = []string{"attr", "attrs", "map", "set", "list", "doc", "const"}

func (r *reader) emitter(n *yaml.Node, path string) Emitter {
	e := Emitter{At: Text{Line: n.Line, Path: path}}
	var forms []string
	source := func(kind string, f yamlfile.Field) yamlfile.Field {
		return func(v *yaml.Node, p string) {
			forms = append(forms, kind)
			e.Kind = kind
			f(v, p)
		}
	}
	r.Fields(n, path, map[string]yamlfile.Field{
		"attr":   source("attr", r.attribute(&e.Name)),
		"attrs":  source("attrs", r.names(&e)),
		"map":    source("map", r.Scalar(&e.Name)),
		"set":    source("set", r.Scalar(&e.Name)),
		"list":   source("list", r.Scalar(&e.Name)),
		"doc":    source("doc", r.document(&e)),
		"const":  source("const", r.Scalar(&e.Name)),
		"except": r.Texts(&e.Except),
		"rename": r.pairs(&e.Rename),
		"to":     r.Scalar(&e.To),
		"as": r.Word(&e.As, "natural", "text", "raw", "decimal", "int64", "float64", "bool1", "json", "dynamo_json",
			"protobuf", "google"),
		"ts":         r.Scalar(&e.TS),
		"ts_missing": r.Word(&e.TSMissing, "refuse", "version", "skip", "never"),
		"cell_id":    r.Word(&e.CellID, "ts"),
		"collisions": r.Word(&e.Collisions, "acknowledged"),
		"flatten":    r.Word(&e.Flatten, "maps"),
		"join":       r.Scalar(&e.Join),
		"format":     r.Word(&e.Format, "json", "dynamo_json", "raw", "protobuf"),
		"value":      r.Scalar(&e.Value),
		"null":       r.Word(&e.Null, "omit", "empty"),
		"fallback":   r.Scalar(&e.Fallback),
		"mode":       r.Word(&e.Mode, "columns", "versions"),
		"otherwise":  r.Scalar(&e.Otherwise),
	})
	r.checkEmitter(&e, forms)
	return e
}

func (r *reader) names(e *Emitter) yamlfile.Field {
	return func(v *yaml.Node, path string) {
		if v.Kind == yaml.ScalarNode {
			if v.Value != "all" {
				r.Errorf(yamlfile.TextAt(v, path), "value", "write `attrs: all` or `attrs: [a, b]`; one attribute is `attr: a`",
					"%q is not a list of attributes", v.Value)
			}
			e.All = true
			return
		}
		r.Texts(&e.Names)(v, path)
	}
}

func (r *reader) document(e *Emitter) yamlfile.Field {
	return func(v *yaml.Node, path string) {
		if v.Kind == yaml.ScalarNode && v.Value == "all" {
			e.All = true
			return
		}
		inner := Emitter{}
		r.Fields(v, path, map[string]yamlfile.Field{"attrs": r.names(&inner), "except": r.Texts(&inner.Except)})
		e.All, e.Names, e.Except = inner.All || len(inner.Names) == 0, inner.Names, inner.Except
	}
}

// attribute reads one attribute's name, where a list is an easy mistake.
func (r *reader) attribute(to *Text) yamlfile.Field {
	return func(v *yaml.Node, path string) {
		if v.Kind == yaml.SequenceNode {
			r.Errorf(yamlfile.TextAt(v, path), "syntax", "several attributes are `attrs: [a, b]`",
				"expected the name of one attribute")
			return
		}
		r.Scalar(to)(v, path)
	}
}

// options are the keys that only some sources know, in the order in which they are reported.
var options = []string{"except", "rename", "flatten", "join", "as", "fallback", "format", "value", "mode", "otherwise"}

// values are the sources whose cells hold an attribute's value; the others say elsewhere what a cell holds.
var values = []string{"attr", "attrs", "map", "list"}

var allowed = map[string][]string{
	"except": {"attrs", "doc"}, "rename": {"attrs", "doc"}, "flatten": {"attrs", "attr", "map"},
	"join": {"attrs", "attr", "map"}, "as": values, "fallback": values,
	"format": {"doc"}, "value": {"set"}, "mode": {"list"}, "otherwise": {"map", "set", "list"},
}

// instead says what an option's author may have meant.
func instead(option, kind string) string {
	hint := "it belongs to: " + strings.Join(allowed[option], ", ")
	switch {
	case option == "as" && kind == "doc":
		return "a document's encoding is `format:`; " + hint
	case option == "as" && kind == "const":
		return "a constant is text, or bytes written as 0x…: 0x0000000000000005 is the 64-bit integer 5; " + hint
	case option == "as" && kind == "set":
		return "every member's cell holds `value:`; " + hint
	}
	return hint
}

func (r *reader) checkEmitter(e *Emitter, forms []string) {
	switch {
	case len(forms) == 0:
		r.Errorf(e.At, "source", "one of: "+strings.Join(sources, ", "), "the cell has no source")
		return
	case len(forms) > 1:
		r.Errorf(e.At, "source", "split it into one entry per source", "the cell has several sources: %s",
			strings.Join(forms, ", "))
		return
	}
	switch {
	case !e.To.Set():
		r.Errorf(e.At, "to", "add `to: \"family:qualifier\"`", "the cell has no target column")
	case strings.HasPrefix(e.To.S, ":"):
		r.Errorf(e.To, "to", "write \"family"+e.To.S+"\", with one of the families", "%q names no family", e.To.S)
	}
	given := map[string]bool{"except": len(e.Except) > 0, "rename": len(e.Rename) > 0, "flatten": e.Flatten.Set(),
		"join": e.Join.Set(),
		"as":   e.As.Set(), "fallback": e.Fallback.Set(), "format": e.Format.Set(), "value": e.Value.Set(),
		"mode": e.Mode.Set(), "otherwise": e.Otherwise.Set()}
	for _, option := range options {
		if given[option] && !slices.Contains(allowed[option], e.Kind) {
			r.Errorf(e.At, "option", instead(option, e.Kind), "`%s` has no meaning for `%s`", option, e.Kind)
		}
	}
}
