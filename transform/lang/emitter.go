package lang

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem/yamlfile"
)

// sourceKeys are the keys that name where the cells of an entry come from; an entry has exactly
// one.
var sourceKeys = []string{"attr", "attrs", "map", "set", "list", "doc", "const"}

// emitter reads one entry of cells: its source, its column, and the options that go with the
// source.
func (r *reader) emitter(n *yaml.Node, path string) Emitter {
	e := Emitter{At: Text{Line: n.Line, Path: path}}
	var given []string // the sources that the entry names
	source := func(kind string, f yamlfile.Field) yamlfile.Field {
		return func(v *yaml.Node, p string) {
			given = append(given, kind)
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
	r.checkEmitter(&e, given)
	return e
}

// names reads `all`, or a list of attributes.
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

// document reads what doc: takes: `all`, or attrs and except.
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

// attribute reads the name of one attribute, and explains the easy mistake of giving a list.
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

// optionKeys are the keys that only some sources allow, in the order in which problems name them.
var optionKeys = []string{"except", "rename", "flatten", "join", "as", "fallback", "format", "value", "mode",
	"otherwise"}

// valueSources are the sources with cells that hold the value of an attribute; the other sources
// have keys of their own for it.
var valueSources = []string{"attr", "attrs", "map", "list"}

// allowedFor lists the sources that allow an option.
var allowedFor = map[string][]string{
	"except": {"attrs", "doc"}, "rename": {"attrs", "doc"}, "flatten": {"attrs", "attr", "map"},
	"join": {"attrs", "attr", "map"}, "as": valueSources, "fallback": valueSources,
	"format": {"doc"}, "value": {"set"}, "mode": {"list"}, "otherwise": {"map", "set", "list"},
}

// optionHint returns what the author of a misplaced option may have meant.
func optionHint(option, kind string) string {
	hint := "it belongs to: " + strings.Join(allowedFor[option], ", ")
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

// checkEmitter reports an entry without exactly one source, without a column, or with options of
// another source.
func (r *reader) checkEmitter(e *Emitter, sources []string) {
	switch {
	case len(sources) == 0:
		r.Errorf(e.At, "source", "one of: "+strings.Join(sourceKeys, ", "), "the cell has no source")
		return
	case len(sources) > 1:
		r.Errorf(e.At, "source", "split it into one entry per source", "the cell has several sources: %s",
			strings.Join(sources, ", "))
		return
	}
	switch {
	case !e.To.Set():
		r.Errorf(e.At, "to", "add `to: \"family:qualifier\"`", "the cell has no target column")
	case strings.HasPrefix(e.To.S, ":"):
		r.Errorf(e.To, "to", "write \"family"+e.To.S+"\", with one of the families", "%q names no family", e.To.S)
	}
	set := map[string]bool{"except": len(e.Except) > 0, "rename": len(e.Rename) > 0, "flatten": e.Flatten.Set(),
		"join": e.Join.Set(),
		"as":   e.As.Set(), "fallback": e.Fallback.Set(), "format": e.Format.Set(), "value": e.Value.Set(),
		"mode": e.Mode.Set(), "otherwise": e.Otherwise.Set()}
	for _, option := range optionKeys {
		if set[option] && !slices.Contains(allowedFor[option], e.Kind) {
			r.Errorf(e.At, "option", optionHint(option, e.Kind), "`%s` has no meaning for `%s`", option, e.Kind)
		}
	}
	if e.Mode.S == "versions" && e.TS.Set() {
		r.Errorf(e.TS, "option", "leave it out: the elements have the times 1, 2, 3, …",
			"`ts` has no meaning beside `mode: versions`")
	}
}
