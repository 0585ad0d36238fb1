package wire

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ShapeKind is the type of a field in the service's model.
type ShapeKind uint8

// The kinds of shapes. Value is an attribute value, which package attr reads.
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

// Shape is the type of a request's field, with the constraints that the service checks before the
// meaning of a request.
type Shape struct {
	Name     string // field name
	Kind     ShapeKind
	Java     string   // class that messages name
	Fields   []*Shape // of a Struct, in the order in which the service checks them
	Elem     *Shape   // of a List or Map
	Required bool     // "The parameter 'X' is required …"
	NotNull  bool     // "Member must not be null"
	Enum     []string
	Pattern  *regexp.Regexp
	MinLen   int
	MaxLen   int
	Min      int64
	HasMin   bool
	Max      int64
	KeyLen   [2]int // shortest and longest key of a Map; 0: no constraint
	NotEmpty bool   // an empty text violates only "length greater than or equal to 1"
	Terse    bool   // messages have the field as it is written, and no value: "Value at 'Limit' failed"
}

// CheckValue checks the shape of an attribute value.
type CheckValue func(n *Node) *Error

// Check checks a request against the shape: first all types, then required parameters, then the
// other constraints, of which at most ten violations are reported together. value checks attribute
// values.
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
	var violations []string
	s.fields(n, "", &violations)
	if len(violations) == 0 {
		return nil
	}
	plural := ""
	if len(violations) > 1 {
		plural = "s"
	}
	return Invalid("%s", fmt.Sprintf("%d validation error%s detected: ", len(violations),
		plural)+strings.Join(violations, "; "))
}

// types checks the JSON types of a node and all below it. top is true for a request and for
// elements of lists and maps, which have other messages.
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

// structKind checks that a structure is a JSON object.
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

// listTypes checks a list and its elements.
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

// mapTypes checks a map and its values.
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

// javaNames are the classes of scalars that have no Java of their own.
var javaNames = map[ShapeKind]string{Text: "String", Boolean: "Boolean", Integer: "Integer"}

// scalar checks the JSON type of a scalar.
func (s *Shape) scalar(n *Node) *Error {
	class := javaNames[s.Kind]
	if s.Java != "" {
		class = s.Java
	}
	return Scalar(n, s.Kind, class)
}

// Scalar checks that a node is a string, a boolean or a number. Like the service, it accepts some
// strings as booleans, and changes the node accordingly. class is the type's name in messages.
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

// Token returns the name of a scalar in the messages of the service's JSON reader.
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

// maxViolations is how many violations the service reports.
const maxViolations = 10

// fields checks the constraints of a structure's fields. parent is the path of the structure, ""
// for the request.
func (s *Shape) fields(n *Node, parent string, violations *[]string) {
	for _, f := range s.Fields {
		f.constrain(n.Get(f.Name), join(parent, lowerFirst(f.Name)), violations)
	}
}

// constrain checks the constraints of a node at a path, and of all below it.
func (s *Shape) constrain(n *Node, at string, violations *[]string) {
	if len(*violations) >= maxViolations {
		return
	}
	violate := func(rule string) {
		*violations = append(*violations, s.about(n, at)+" failed to satisfy constraint: "+rule)
	}
	if n == nil || n.Kind == Null {
		if s.NotNull {
			n = nil
			violate("Member must not be null")
		}
		return
	}
	s.lengths(n, violate)
	if s.Enum != nil && !slices.Contains(s.Enum, n.Text) {
		violate("Member must satisfy enum value set: [" + strings.Join(s.Enum, ", ") + "]")
	}
	if s.KeyLen[1] > 0 {
		s.keys(n, violate)
	}
	switch s.Kind {
	case Integer:
		if v := toInt(n.Text); s.HasMin && v < s.Min {
			violate("Member must have value greater than or equal to " + strconv.FormatInt(s.Min, 10))
		} else if s.Max > 0 && v > s.Max {
			violate("Member must have value less than or equal to " + strconv.FormatInt(s.Max, 10))
		}
	case List:
		for i := range n.Kids {
			s.Elem.member(&n.Kids[i], at+"."+strconv.Itoa(i+1)+".member", violations)
		}
	case Map:
		for i := range n.Kids {
			s.Elem.member(&n.Kids[i], at+"."+n.Kids[i].Name+".member", violations)
		}
	case Struct:
		s.fields(n, at, violations)
	}
}

// about returns the beginning of a violation: the value and the place of a node.
func (s *Shape) about(n *Node, at string) string {
	switch {
	case n == nil:
		return "Value null at '" + at + "'"
	case s.Terse:
		at = at[:len(at)-len(s.Name)] + s.Name
		return "Value at '" + strings.ToUpper(at[:1]) + at[1:] + "'"
	}
	return "Value '" + s.show(n) + "' at '" + at + "'"
}

// member is constrain for an element of a list or map, which must not be null. Package attr checks
// attribute values.
func (s *Shape) member(n *Node, at string, violations *[]string) {
	if s.Kind == Value {
		return
	}
	m := *s
	m.NotNull = true
	m.constrain(n, at, violations)
}

// lengths checks the pattern and the length of a text, a list or a map.
func (s *Shape) lengths(n *Node, violate func(string)) {
	size := len(n.Text)
	if n.Kind == Array || n.Kind == Object {
		size = len(n.Kids)
	}
	if size == 0 && s.NotEmpty {
		violate("Member must have length greater than or equal to 1")
		return
	}
	if s.Pattern != nil && !s.Pattern.MatchString(n.Text) {
		violate("Member must satisfy regular expression pattern: " + pattern(s.Pattern))
	}
	if size < s.MinLen {
		violate("Member must have length greater than or equal to " + strconv.Itoa(s.MinLen))
	}
	if s.MaxLen > 0 && size > s.MaxLen {
		violate("Member must have length less than or equal to " + strconv.Itoa(s.MaxLen))
	}
}

// keys checks the lengths of a map's keys.
func (s *Shape) keys(n *Node, violate func(string)) {
	for i := range n.Kids {
		name := n.Kids[i].Name
		if len(name) < s.KeyLen[0] || len(name) > s.KeyLen[1] {
			violate(fmt.Sprintf("Map keys must satisfy constraint: [Member must have length less than or equal to %d, "+
				"Member must have length greater than or equal to %d]", s.KeyLen[1], s.KeyLen[0]))
			return
		}
	}
}

// pattern returns a pattern as messages show it.
func pattern(re *regexp.Regexp) string {
	return strings.TrimSuffix(strings.TrimPrefix(re.String(), "^"), "$")
}

// Show returns a node as the service's messages show values.
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

// show returns a node of this shape as messages show it: structures in a list have the name of
// their class.
func (s *Shape) show(n *Node) string {
	if s.Kind != List || s.Elem.Kind != Struct {
		return Show(n)
	}
	all := make([]string, len(n.Kids))
	for i := range n.Kids {
		fields := make([]string, len(n.Kids[i].Kids))
		for j := range fields {
			f := &n.Kids[i].Kids[j]
			fields[j] = lowerFirst(f.Name) + "=" + Show(f)
		}
		all[i] = s.Elem.Java + "(" + strings.Join(fields, ", ") + ")"
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// join returns the path of a field.
func join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

func lowerFirst(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToLower(s[:1]) + s[1:]
}
