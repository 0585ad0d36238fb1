// Package wire reads and answers awsJson 1.0: a JSON reader that keeps what the
// service distinguishes (number text, absent and null), the service's errors, and
// the two checks it makes before looking at anything else: types and constraints.
package wire

// Kind says which JSON value a Node is.
type Kind uint8

// The JSON kinds. Absent is the zero Node: a field that was not sent.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// Node is one JSON value. Text is a string's value, a number's text or "true" /
// "false"; it aliases the body that was parsed. Kids are the elements of an array, or
// the fields of an object, each with its Name.
type Node struct {
	Kind Kind
	Name string
	Text string
	Kids []Node
}

// Get returns the field of an object, or nil when it is absent or null. Of fields sent
// twice the last one counts.
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

// Str returns the text of a field, "" when it is absent.
func (n *Node) Str(name string) string {
	if f := n.Get(name); f != nil {
		return f.Text
	}
	return ""
}

// Has says whether the field was sent and is not null.
func (n *Node) Has(name string) bool { return n.Get(name) != nil }

// True says whether the boolean field was sent and is true.
func (n *Node) True(name string) bool { return n.Str(name) == "true" }

// Int returns an integer field and whether it was sent. Fractions are cut off.
func (n *Node) Int(name string) (int64, bool) {
	f := n.Get(name)
	if f == nil {
		return 0, false
	}
	return toInt(f.Text), true
}

// Strings returns the texts of an array field.
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
