package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/problem/yamlfile"
)

// reference is ${NAME}, ${NAME:-default} or ${file:PATH}; $${ is a literal ${.
var reference = regexp.MustCompile(`\$?\$\{([^}]*)\}`)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces references to environment variables and secret files in the values of the tree,
// never in keys. It leaves inline mappings alone: their template language uses braces too. Origins
// records which values come from outside.
func (r *report) expand(root *yaml.Node, dir string) {
	r.Origins = map[*yaml.Node]string{}
	r.expandNode(root, "", dir)
}

// expandNode expands the scalars of the node at path and of all nodes below it.
func (r *report) expandNode(n *yaml.Node, path, dir string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Value == "mapping" && value.Kind != yaml.ScalarNode {
				continue
			}
			r.expandNode(value, yamlfile.Join(path, key.Value), dir)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			r.expandNode(c, yamlfile.Item(path, i), dir)
		}
	case yaml.ScalarNode:
		r.expandScalar(n, path, dir)
	}
}

// expandScalar replaces the references in one scalar. A reference that cannot be resolved is a
// problem and becomes empty.
func (r *report) expandScalar(n *yaml.Node, path, dir string) {
	if !strings.Contains(n.Value, "${") {
		return
	}
	if whole := reference.FindString(n.Value); whole == n.Value && n.Value[1] != '$' {
		n.Tag, n.Style = "", 0 // the whole value comes from outside and may be a number
	}
	n.Value = reference.ReplaceAllStringFunc(n.Value, func(ref string) string {
		if strings.HasPrefix(ref, "$$") {
			return ref[1:]
		}
		value, err := lookup(ref[2:len(ref)-1], dir)
		if err != nil {
			hint := "set it, give a default as in ${NAME:-value}, or write $${ for a literal ${"
			r.Errorf(problem.Text{Path: path, Line: n.Line}, "unset", hint, "%v", err)
		}
		r.Origins[n] = ref
		return value
	})
}

// lookup returns the value of a reference without its braces: a variable, one with a default, or
// file:PATH.
func lookup(name, dir string) (string, error) {
	if path, ok := strings.CutPrefix(name, "file:"); ok {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("the file of a secret cannot be read: %w", err)
		}
		return strings.TrimRight(string(data), "\r\n"), nil
	}
	name, def, hasDefault := strings.Cut(name, ":-")
	if !envName.MatchString(name) {
		return "", fmt.Errorf("%q is not the name of an environment variable", name)
	}
	if v, ok := os.LookupEnv(name); ok && (v != "" || !hasDefault) {
		return v, nil
	}
	if hasDefault {
		return def, nil
	}
	return "", fmt.Errorf("the environment variable %s is not set", name)
}
