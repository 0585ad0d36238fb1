// Package yamlfile reads YAML files strictly: unknown keys, keys that are written twice and values
// of the wrong kind are problems, and all problems of a file are reported at once, each with its
// path and line.
//
// A file is read into Go values by Decode, after their yaml tags, or key by key by the functions of
// a Field map. The package is independent of what the files mean.
package yamlfile

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem"
)

// Reader reads one file and collects its problems. Set the exported fields before the first call; a
// zero field turns its feature off.
type Reader struct {
	problem.Collector

	// KindCode and ValueCode are the codes for a value of the wrong kind (a list instead of a
	// text), and for one of the right kind that is not a possible value.
	KindCode, ValueCode string
	// Example is the hint of Decode for wrong values: where to see right ones.
	Example string
	// Elsewhere returns to which part of the file an unknown key belongs, "" if to none.
	Elsewhere func(key string) string
	// Merge lets `<<: *anchor` share the entries of another block.
	Merge bool
	// Origins names what the value of a scalar was taken from, as in ${NAME}. Such a value may be a
	// secret: problems name the origin instead.
	Origins map[*yaml.Node]string

	places map[string]place // by path
}

// place is where a key or a list's element stands, and its value.
type place struct {
	line  int
	value *yaml.Node
}

// Load parses the text of a file. It returns nil if that is not YAML, and a null node for an empty
// file.
func (r *Reader) Load(data []byte) *yaml.Node {
	empty := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: 1}
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc); errors.Is(err, io.EOF) {
		return empty // nothing but comments
	}
	if err := yaml.Load(data, &doc); err != nil {
		at, message := problem.Text{}, strings.TrimPrefix(err.Error(), "yaml: ")
		if le := (*yaml.LoadError)(nil); errors.As(err, &le) {
			at.Line, message = min(le.Mark.Line, lines(data)), strings.TrimPrefix(le.Message, "yaml: ")
		}
		r.Errorf(at, "syntax", "look at indentation, at missing quotes around { } # : and at tabs", "not YAML: %s", message)
		return nil
	}
	root := doc.Content[0]
	root.Line = min(root.Line, lines(data)) // "---" and nothing else has a null behind its end
	return root
}

// lines counts the lines of a text, by what YAML takes for a line break. The parser may name the
// line behind the last one where a text ends early.
func lines(data []byte) int {
	n := 1 - bytes.Count(data, []byte("\r\n"))
	for _, lineBreak := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		n += bytes.Count(data, []byte(lineBreak))
	}
	return n
}

// Written reports whether the file that was read has a key or an element at path.
func (r *Reader) Written(path string) bool { return r.places[path].line > 0 }

// Value returns the value at path, or nil.
func (r *Reader) Value(path string) *yaml.Node { return r.places[path].value }

// At returns path with the line where it stands, or where the nearest block around it does; the
// line is 0 if none of it is written.
func (r *Reader) At(path string) problem.Text {
	at := problem.Text{Path: path}
	for path != "" && at.Line == 0 {
		at.Line = r.places[path].line
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return at
}

func (r *Reader) remember(path string, line int, value *yaml.Node) {
	if r.places == nil {
		r.places = map[string]place{}
	}
	r.places[path] = place{line, value}
}

// TextAt returns a scalar with its place.
func TextAt(n *yaml.Node, path string) problem.Text {
	return problem.Text{S: n.Value, Line: n.Line, Path: path}
}

// Join returns the path of a key inside the block at path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Item returns the path of an element of the list at path.
func Item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Resolve returns the node that an alias stands for, and any other node itself.
func Resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
