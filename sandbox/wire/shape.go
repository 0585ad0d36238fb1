package wire

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ShapeKind is what the service's model says a field is.
type ShapeKind uint8

// The kinds of shapes. Value is an attribute value: its own package reads it.
const (
	Text ShapeKind = iota
	Boolean
	Integer
	List
	Map
	Struct
	Value
	Any
)

// Shape describes a field of a request: its type and the constraints that the service
// checks, in its own order, before it looks at the meaning.
type Shape struct {
	Name     string // field name
	Kind     ShapeKind
	Java     string // class that the service names in its messages
	Fields   []*Shape
	Elem     *Shape
	Required bool // "The parameter 'X' is required …"
	NotNull  bool // "Member must not be null"
	Enum     []string
	Pattern  *regexp.Regexp
	MinLen   int
	MaxLen   int
	Min      int64
	HasMin   bool
	Max      int64
	KeyLen   [2]int
}

// CheckValue is called for every attribute value with its node; it reports a value
// whose shape cannot be read.
type CheckValue func(n *Node) *Error

// Check applies the types, then the constraints of the shape to a request.
func (s *Shape) Check(n *Node, value CheckValue) *Error {
	if n.Kind != Object {
		return Unreadable("Unexpected value type in payload")
	}
	if err := s.types(n, value, true); err != nil {
		return err
	}
	for _, f := range s.Fields {
		if f.Required && !n.Has(f.Name) {
			return Invalid("The parameter '%s' is required but was not present in the request", f.Name)
		}
	}
	var faults []string
	s.fields(n, "", &faults)
	if len(faults) == 0 {
		return nil
	}
	plural := ""
	if len(faults) > 1 {
		plural = "s"
	}
	return Invalid("%s", fmt.Sprintf("%d validation error%s detected: ", len(faults), plural)+strings.Join(faults, "; "))
}

func (s *Shape) types(n *Node, value CheckValue, top bool) *Error {
	if n == nil || n.Kind == Null {
		return nil
	}
	switch s.Kind {
	case Text, Boolean, Integer:
		return s.scalar(n)
	case List:
		return s.listTypes(n, value)
	case Map:
		return s.mapTypes(n, value)
	case Value:
		return value(n)
	case Struct:
		if err := s.structKind(n, top); err != nil {
			return err
		}
		for _, f := range s.Fields {
			if err := f.types(n.Get(f.Name), value, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Shape) structKind(n *Node, top bool) *Error {
	switch {
	case n.Kind == Object:
		return nil
	case n.Kind == Array:
		return Unreadable("Unrecognized collection type class com.amazonaws.dynamodb.v20120810." + s.Java)
	case top:
		return Unreadable("Unexpected value type in payload")
	}
	return Unreadable("Unexpected field type")
}

func (s *Shape) listTypes(n *Node, value CheckValue) *Error {
	switch n.Kind {
	case Array:
	case Object:
		return Unreadable("Start of structure or map found where not expected")
	default:
		return Unreadable("Unexpected field type")
	}
	for i := range n.Kids {
		if err := s.Elem.types(&n.Kids[i], value, true); err != nil {
			return err
		}
	}
	return nil
}

func (s *Shape) mapTypes(n *Node, value CheckValue) *Error {
	switch n.Kind {
	case Object:
	case Array:
		class := s.Java
		if !strings.Contains(class, ".") {
			class = "com.amazonaws.dynamodb.v20120810." + class
		}
		return Unreadable("Unrecognized collection type java.util.Map<java.lang.String, " + class + ">")
	default:
		return Unreadable("Unexpected field type")
	}
	for i := range n.Kids {
		if err := s.Elem.types(&n.Kids[i], value, true); err != nil {
			return err
		}
	}
	return nil
}

var javaNames = map[ShapeKind]string{Text: "String", Boolean: "Boolean", Integer: "Integer"}

func (s *Shape) scalar(n *Node) *Error {
	class := javaNames[s.Kind]
	if s.Java != "" {
		class = s.Java
	}
	return Scalar(n, s.Kind, class)
}

// Scalar checks that a node is a string, boolean or number as asked for, and says what
// the service says when it is not.
func Scalar(n *Node, want ShapeKind, class string) *Error {
	switch n.Kind {
	case Array:
		return Unreadable("Unrecognized collection type class java.lang." + class)
	case Object:
		return Unreadable("Start of structure or map found where not expected")
	}
	got := map[Kind]ShapeKind{String: Text, Bool: Boolean, Number: Integer}[n.Kind]
	if got == want {
		return nil
	}
	if want == Boolean && n.Kind == String {
		switch strings.ToUpper(n.Text) {
		case "TRUE", "1", "YES":
			n.Kind, n.Text = Bool, "true"
			return nil
		case "FALSE", "0", "NO":
			n.Kind, n.Text = Bool, "false"
			return nil
		}
		return Unreadable("Unexpected token received from parser")
	}
	return Unreadable(Token(n) + " cannot be converted to " + class)
}

// Token is the name that the service's JSON reader has for a scalar.
func Token(n *Node) string {
	switch {
	case n.Kind == String:
		return "STRING_VALUE"
	case n.Kind == Bool:
		return strings.ToUpper(n.Text) + "_VALUE"
	case strings.ContainsAny(n.Text, ".eE"):
		return "DECIMAL_VALUE"
	}
	return "NUMBER_VALUE"
}

const maxFaults = 10

func (s *Shape) fields(n *Node, parent string, faults *[]string) {
	for _, f := range s.Fields {
		f.constrain(n.Get(f.Name), join(parent, lowerFirst(f.Name)), faults)
	}
}

func (s *Shape) constrain(n *Node, at string, faults *[]string) {
	if len(*faults) >= maxFaults {
		return
	}
	fault := func(rule string) {
		shown := "null"
		if n != nil {
			shown = "'" + Show(n) + "'"
		}
		*faults = append(*faults, "Value "+shown+" at '"+at+"' failed to satisfy constraint: "+rule)
	}
	if n == nil || n.Kind == Null {
		if s.NotNull {
			n = nil
			fault("Member must not be null")
		}
		return
	}
	s.lengths(n, fault)
	if s.Enum != nil && !contains(s.Enum, n.Text) {
		fault("Member must satisfy enum value set: [" + strings.Join(s.Enum, ", ") + "]")
	}
	if s.KeyLen[1] > 0 {
		s.keys(n, fault)
	}
	switch s.Kind {
	case Integer:
		if v := toInt(n.Text); s.HasMin && v < s.Min {
			fault("Member must have value greater than or equal to " + strconv.FormatInt(s.Min, 10))
		} else if s.Max > 0 && v > s.Max {
			fault("Member must have value less than or equal to " + strconv.FormatInt(s.Max, 10))
		}
	case List:
		for i := range n.Kids {
			s.Elem.member(&n.Kids[i], at+"."+strconv.Itoa(i+1)+".member", faults)
		}
	case Map:
		for i := range n.Kids {
			s.Elem.member(&n.Kids[i], at+"."+n.Kids[i].Name+".member", faults)
		}
	case Struct:
		s.fields(n, at, faults)
	}
}

// member is constrain for what is in a list or map: it may not be null. What an
// attribute value may be is its own package's concern.
func (s *Shape) member(n *Node, at string, faults *[]string) {
	if s.Kind == Value {
		return
	}
	m := *s
	m.NotNull = true
	m.constrain(n, at, faults)
}

func (s *Shape) lengths(n *Node, fault func(string)) {
	size := len(n.Text)
	if n.Kind == Array || n.Kind == Object {
		size = len(n.Kids)
	}
	if s.Pattern != nil && !s.Pattern.MatchString(n.Text) {
		fault("Member must satisfy regular expression pattern: " + pattern(s.Pattern))
	}
	if size < s.MinLen {
		fault("Member must have length greater than or equal to " + strconv.Itoa(s.MinLen))
	}
	if s.MaxLen > 0 && size > s.MaxLen {
		fault("Member must have length less than or equal to " + strconv.Itoa(s.MaxLen))
	}
}

// keys checks the names of a map whose names are table names.
func (s *Shape) keys(n *Node, fault func(string)) {
	for i := range n.Kids {
		name := n.Kids[i].Name
		if len(name) < s.KeyLen[0] || len(name) > s.KeyLen[1] {
			fault(fmt.Sprintf("Map keys must satisfy constraint: [Member must have length less than or equal to %d, "+
				"Member must have length greater than or equal to %d]", s.KeyLen[1], s.KeyLen[0]))
			return
		}
	}
}

func pattern(re *regexp.Regexp) string {
	return strings.TrimSuffix(strings.TrimPrefix(re.String(), "^"), "$")
}

// Show writes a node as the service shows values in its messages.
func Show(n *Node) string {
	switch n.Kind {
	case Array:
		parts := make([]string, len(n.Kids))
		for i := range n.Kids {
			parts[i] = Show(&n.Kids[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Object:
		parts := make([]string, len(n.Kids))
		for i := range n.Kids {
			parts[i] = n.Kids[i].Name + "=" + Show(&n.Kids[i])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case Null, Absent:
		return "null"
	}
	return n.Text
}

func join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func contains(all []string, s string) bool {
	for _, a := range all {
		if a == s {
			return true
		}
	}
	return false
}
