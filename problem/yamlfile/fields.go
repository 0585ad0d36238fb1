package yamlfile

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem"
)

// Field reads the value of one known key.
type Field func(value *yaml.Node, path string)

// Fields reads a block of known keys: every other key is a problem.
func (r *Reader) Fields(n *yaml.Node, path string, known map[string]Field) {
	r.fields(n, path, slices.Sorted(maps.Keys(known)), known)
}

// fields is Fields with the known keys in the order in which hints list them.
func (r *Reader) fields(n *yaml.Node, path string, names []string, known map[string]Field) {
	r.Entries(n, path, func(key, value *yaml.Node, path string) {
		if read := known[key.Value]; read != nil {
			read(value, path)
			return
		}
		hint := "known here: " + strings.Join(names, ", ")
		if part := r.elsewhere(key.Value); part != "" {
			hint = "it belongs to " + part + "; " + hint
		} else if near := problem.Nearest(key.Value, names); near != "" {
			hint = "did you mean `" + near + "`? " + hint
		}
		r.Errorf(TextAt(key, path), "unknown_key", hint, "unknown key %q", key.Value)
	})
}

func (r *Reader) elsewhere(key string) string {
	if r.Elsewhere == nil {
		return ""
	}
	return r.Elsewhere(key)
}

// Entries calls f for every key of a block, in the order of the file; keys from merged blocks come
// last. A key that the block has twice is a problem and is read once. A null is an empty block.
func (r *Reader) Entries(n *yaml.Node, path string, f func(key, value *yaml.Node, path string)) {
	n = Resolve(n)
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.wrongKind(n, path, "a block of keys", "write `key: value` lines or {key: value}")
		return
	}
	e := entries{reader: r, path: path, read: f, lines: map[string]int{}, merged: map[*yaml.Node]bool{n: true}}
	e.block(n, false)
}

// entries is one call of Entries.
type entries struct {
	reader *Reader
	path   string
	read   func(key, value *yaml.Node, path string)
	lines  map[string]int      // of the keys that were read
	merged map[*yaml.Node]bool // blocks that were read: an anchor may be used inside its own block
}

// block reads the entries of one block, then the entries of the blocks that it merges. Keys of
// merged blocks yield to its own.
func (e *entries) block(n *yaml.Node, yields bool) {
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := Resolve(n.Content[i]), Resolve(n.Content[i+1])
		path := Join(e.path, key.Value)
		first, twice := e.lines[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			e.reader.wrongKind(key, e.path, "a text as key", "write `key: value` lines or {key: value}")
		case e.reader.Merge && key.ShortTag() == "!!merge":
			merges = append(merges, value)
		case twice && !yields:
			e.reader.Errorf(TextAt(key, path), "duplicate", "remove one of them", "%q is written twice, first in line %d",
				key.Value, first)
		case !twice:
			e.lines[key.Value] = key.Line
			e.reader.remember(path, key.Line, value)
			e.read(key, value, path)
		}
	}
	for _, n := range merges {
		e.merge(n)
	}
}

// merge reads the entries of a merged block, or of each block in a list of them, once.
func (e *entries) merge(n *yaml.Node) {
	switch {
	case e.merged[n]:
	case n.Kind == yaml.MappingNode:
		e.merged[n] = true
		e.block(n, true)
	case n.Kind == yaml.SequenceNode:
		e.merged[n] = true
		for _, c := range n.Content {
			e.merge(Resolve(c))
		}
	default:
		e.reader.wrongKind(n, e.path, "a block of keys to merge", "write <<: *anchor")
	}
}

// Elements calls f for every element of a list.
func (r *Reader) Elements(n *yaml.Node, path string, f Field) {
	if n.Kind != yaml.SequenceNode {
		r.wrongKind(n, path, "a list", "write [a, b] or `- a` lines")
		return
	}
	for i, element := range n.Content {
		path, value := Item(path, i), Resolve(element)
		r.remember(path, element.Line, value)
		f(value, path)
	}
}
