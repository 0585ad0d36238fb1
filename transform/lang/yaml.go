package lang

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// reader walks YAML nodes and collects problems; every key that nobody asked for is one.
type reader struct {
	Problems
	acks []Text
}

// field reads the value of one known key.
type field func(v *yaml.Node, path string)

func textAt(n *yaml.Node, path string) Text { return Text{S: n.Value, Line: n.Line, Path: path} }

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// entries calls f for every key of a YAML mapping, in the order of the file.
func (r *reader) entries(n *yaml.Node, path string, f func(key *yaml.Node, v *yaml.Node, path string)) {
	n = resolve(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.Errorf(textAt(n, path), "syntax", "write `key: value` lines or {key: value}", "expected a mapping of keys and values")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], resolve(n.Content[i+1])
		p := join(path, k.Value)
		if line, dup := seen[k.Value]; dup {
			r.Errorf(textAt(k, p), "duplicate", "remove one of them", "%q is written twice, first in line %d", k.Value, line)
			continue
		}
		seen[k.Value] = k.Line
		f(k, v, p)
	}
}

// fields reads a YAML mapping whose keys are all known.
func (r *reader) fields(n *yaml.Node, path string, known map[string]field) {
	r.entries(n, path, func(k, v *yaml.Node, p string) {
		if f := known[k.Value]; f != nil {
			f(v, p)
			return
		}
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		slices.Sort(names)
		hint := "known here: " + strings.Join(names, ", ")
		if part := place(k.Value); part != "" {
			hint = "it belongs to " + part + "; " + hint
		} else if near := Nearest(k.Value, names); near != "" {
			hint = "did you mean `" + near + "`? " + hint
		}
		r.Errorf(textAt(k, p), "unknown_key", hint, "unknown key %q", k.Value)
	})
}

func (r *reader) scalar(to *Text) field {
	return func(v *yaml.Node, path string) {
		if v.Kind != yaml.ScalarNode {
			r.Errorf(textAt(v, path), "syntax", "put the text in quotes", "expected one text or number")
			return
		}
		*to = textAt(v, path)
	}
}

// word reads a scalar that must be one of a few words.
func (r *reader) word(to *Text, words ...string) field {
	return func(v *yaml.Node, path string) {
		r.scalar(to)(v, path)
		if to.S != "" && !slices.Contains(words, to.S) {
			hint := "one of: " + strings.Join(words, ", ")
			if near := Nearest(to.S, words); near != "" {
				hint = "did you mean `" + near + "`? " + hint
			}
			r.Errorf(*to, "value", hint, "%q is not known here", to.S)
		}
	}
}

func (r *reader) boolean(to *bool) field {
	return func(v *yaml.Node, path string) {
		b, err := strconv.ParseBool(v.Value)
		if v.Kind != yaml.ScalarNode || err != nil {
			r.Errorf(textAt(v, path), "value", "write true or false", "expected true or false")
			return
		}
		*to = b
	}
}

func (r *reader) texts(to *[]Text) field {
	return func(v *yaml.Node, path string) {
		r.list(v, path, func(e *yaml.Node, p string) {
			var t Text
			r.scalar(&t)(e, p)
			*to = append(*to, t)
		})
	}
}

func (r *reader) list(n *yaml.Node, path string, f field) {
	if n.Kind != yaml.SequenceNode {
		r.Errorf(textAt(n, path), "syntax", "write [a, b] or `- a` lines", "expected a list")
		return
	}
	for i, e := range n.Content {
		f(resolve(e), item(path, i))
	}
}

func (r *reader) pairs(to *[]Pair) field {
	return func(v *yaml.Node, path string) {
		r.entries(v, path, func(k, v *yaml.Node, p string) {
			pair := Pair{Name: k.Value}
			r.scalar(&pair.Value)(v, p)
			*to = append(*to, pair)
		})
	}
}

func (r *reader) duration(to *time.Duration) field {
	return func(v *yaml.Node, path string) {
		d, ok := parseDuration(v.Value)
		if !ok || d <= 0 {
			r.Errorf(textAt(v, path), "value", "write 30d, 12h, 90m or 1s", "%q is not a duration", v.Value)
			return
		}
		*to = d
	}
}

// parseDuration reads Go's durations, and days, which retention is usually said in.
func parseDuration(s string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour, err == nil && n < 100_000
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}
