package yamlfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tailrace-cdc/replicator/problem"
)

// Scalar reads a text or number as it is written.
func (r *Reader) Scalar(to *problem.Text) Field {
	return func(n *yaml.Node, path string) {
		if n.Kind != yaml.ScalarNode {
			r.wrongKind(n, path, "one text or number", "put the text in quotes")
			return
		}
		*to = TextAt(n, path)
	}
}

// Word reads a scalar that must be one of a few words.
func (r *Reader) Word(to *problem.Text, words ...string) Field {
	return func(n *yaml.Node, path string) {
		r.Scalar(to)(n, path)
		if to.S != "" && !slices.Contains(words, to.S) {
			hint := "one of: " + strings.Join(words, ", ")
			if near := problem.Nearest(to.S, words); near != "" {
				hint = "did you mean `" + near + "`? " + hint
			}
			r.Errorf(*to, r.ValueCode, hint, "%q is not known here", to.S)
		}
	}
}

// Bool reads true or false.
func (r *Reader) Bool(to *bool) Field {
	return func(n *yaml.Node, path string) {
		b, err := strconv.ParseBool(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			r.wrong(n, path, r.ValueCode, "write true or false", describe(n)+" does not fit: expected true or false")
			return
		}
		*to = b
	}
}

// Texts reads a list of scalars.
func (r *Reader) Texts(to *[]problem.Text) Field {
	return func(n *yaml.Node, path string) {
		r.Elements(n, path, func(e *yaml.Node, path string) {
			var t problem.Text
			r.Scalar(&t)(e, path)
			*to = append(*to, t)
		})
	}
}

// wrongKind reports a value of another kind than the one that is wanted at path.
func (r *Reader) wrongKind(n *yaml.Node, path, wanted, hint string) {
	r.wrong(n, path, r.KindCode, hint, describe(n)+" does not fit: expected "+wanted)
}

// wrong reports a value, without repeating it if it came from outside the file.
func (r *Reader) wrong(n *yaml.Node, path, code, hint, what string) {
	if from := r.Origins[n]; from != "" {
		what = "what " + from + " holds cannot be used here"
		hint = "print the variable or file; " + hint
	}
	r.Errorf(problem.Text{Line: n.Line, Path: path}, code, hint, "%s", what)
}

// longestShown is how much of a wrong value a problem repeats, in characters.
const longestShown = 40

// describe names a node in its author's terms.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a block"
	}
	value := []rune(n.Value)
	if len(value) > longestShown {
		value = append(value[:longestShown], '…')
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return fmt.Sprintf("the number `%s`", string(value))
	case "!!bool":
		return fmt.Sprintf("`%s`", string(value))
	default:
		return fmt.Sprintf("the text `%s`", string(value))
	}
}
