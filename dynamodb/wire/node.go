// Package wire reads requests and writes replies in awsJson 1.0. It has a JSON reader that
// preserves what the service distinguishes (the text of numbers, absent and null), the service's
// errors, and the checks that the service makes first: JSON types and constraints of fields.
package wire

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds of JSON values. Absent is the kind of the zero Node, a field that was not sent.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// Node is one JSON value. Text is a string's value, a number's text, "true" or "false", and aliases
// the parsed body. Kids are the elements of an array, or the fields of an object, each with its
// Name.
type Node struct {
	Kind Kind
	Name string
	Text string
	Kids []Node
}

// Get returns a field of an object, nil when it is absent or null. Of several fields with the name
// it returns the last.
func (n *Node) Get(name string) *Node {
	for i := len(n.Kids) - 1; i >= 0; i-- {
		if k := &n.Kids[i]; k.Name == name {
			if k.Kind == Null {
				return nil
			}
			return k
		}
	}
	return nil
}

// Str returns the text of a field, "" when the field is absent.
func (n *Node) Str(name string) string {
	if f := n.Get(name); f != nil {
		return f.Text
	}
	return ""
}

// Has reports whether a field was sent and is not null.
func (n *Node) Has(name string) bool { return n.Get(name) != nil }

// True reports whether a boolean field was sent and is true.
func (n *Node) True(name string) bool { return n.Str(name) == "true" }

// Int returns an integer field without its fraction, and whether it was sent.
func (n *Node) Int(name string) (int64, bool) {
	f := n.Get(name)
	if f == nil {
		return 0, false
	}
	return toInt(f.Text), true
}

// Strings returns the texts of an array's elements.
func (n *Node) Strings(name string) []string {
	f := n.Get(name)
	if f == nil {
		return nil
	}
	out := make([]string, len(f.Kids))
	for i := range f.Kids {
		out[i] = f.Kids[i].Text
	}
	return out
}
