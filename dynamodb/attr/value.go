// Package attr has the attribute values of the sandbox's DynamoDB: their types, JSON form, numbers
// of 38 digits, sizes and equality. Decode and DecodeMap bring values into a normal form:
// attributes sorted by name, sets sorted, numbers in plain decimal form. Two items are equal by
// value exactly when the JSON of their normal forms is equal byte for byte.
package attr

import (
	"sort"
	"strings"
)

// Kind is the type of an attribute value.
type Kind uint8

// The ten types.
const (
	None Kind = iota
	S
	N
	B
	SS
	NS
	BS
	M
	L
	Bool
	Null
)

var kindNames = [...]string{"", "S", "N", "B", "SS", "NS", "BS", "M", "L", "BOOL", "NULL"}

// String returns the type's name on the wire.
func (k Kind) String() string { return kindNames[k] }

// KindOf returns the type of a wire name, None if there is none.
func KindOf(name string) Kind {
	for k := S; k <= Null; k++ {
		if kindNames[k] == name {
			return k
		}
	}
	return None
}

// Value is one attribute value. Str is a string, a number's plain text or the bytes of a binary;
// Set has the members of a set in the same forms, sorted; True is the value of BOOL and NULL.
type Value struct {
	Kind Kind
	True bool
	Str  string
	Set  []string
	List []Value
	Map  Map
}

// Attr is a named value.
type Attr struct {
	Name  string
	Value Value
}

// Map is an item, or a value of type M: attributes sorted by name.
type Map []Attr

// find returns the index of a name, or the index at which it would be.
func (m Map) find(name string) (int, bool) {
	if len(m) > 8 {
		i := sort.Search(len(m), func(i int) bool { return m[i].Name >= name })
		return i, i < len(m) && m[i].Name == name
	}
	for i := range m {
		if m[i].Name >= name {
			return i, m[i].Name == name
		}
	}
	return len(m), false
}

// Get returns a pointer to the value of a name within the map, nil if the name is missing.
func (m Map) Get(name string) *Value {
	if i, ok := m.find(name); ok {
		return &m[i].Value
	}
	return nil
}

// Set sets the value of a name.
func (m *Map) Set(name string, v Value) {
	i, ok := m.find(name)
	if !ok {
		*m = append(*m, Attr{})
		copy((*m)[i+1:], (*m)[i:])
	}
	(*m)[i] = Attr{name, v}
}

// Delete removes a name.
func (m *Map) Delete(name string) {
	if i, ok := m.find(name); ok {
		*m = append((*m)[:i], (*m)[i+1:]...)
	}
}

// Sorted sorts a map that is not in its normal order, in place, and returns it.
func (m Map) Sorted() Map {
	sort.Slice(m, func(i, j int) bool { return m[i].Name < m[j].Name })
	return m
}

// Clone returns a copy that shares nothing that is changed in place.
func (m Map) Clone() Map {
	if m == nil {
		return nil
	}
	c := make(Map, len(m))
	for i := range m {
		c[i] = Attr{m[i].Name, m[i].Value.Clone()}
	}
	return c
}

// Clone returns a deep copy. Sets are shared, because they are never changed in place.
func (v Value) Clone() Value {
	if v.Map != nil {
		v.Map = v.Map.Clone()
	}
	if v.List != nil {
		list := make([]Value, len(v.List))
		for i := range v.List {
			list[i] = v.List[i].Clone()
		}
		v.List = list
	}
	return v
}

// Equal reports whether two values in normal form are equal.
func (v *Value) Equal(o *Value) bool {
	if v.Kind != o.Kind || v.True != o.True || v.Str != o.Str ||
		len(v.Set) != len(o.Set) || len(v.List) != len(o.List) || len(v.Map) != len(o.Map) {
		return false
	}
	for i := range v.Set {
		if v.Set[i] != o.Set[i] {
			return false
		}
	}
	for i := range v.List {
		if !v.List[i].Equal(&o.List[i]) {
			return false
		}
	}
	for i := range v.Map {
		if v.Map[i].Name != o.Map[i].Name || !v.Map[i].Value.Equal(&o.Map[i].Value) {
			return false
		}
	}
	return true
}

// Compare orders two values of the same scalar type; ok is false for anything else.
func (v *Value) Compare(o *Value) (order int, ok bool) {
	if v.Kind != o.Kind {
		return 0, false
	}
	switch v.Kind {
	case S, B:
		return strings.Compare(v.Str, o.Str), true
	case N:
		return CompareNumbers(v.Str, o.Str), true
	}
	return 0, false
}

// IsSet reports whether the value is of one of the three set types.
func (v *Value) IsSet() bool { return v.Kind >= SS && v.Kind <= BS }

// Element returns the type of a set's members.
func (v *Value) Element() Kind { return v.Kind - SS + S }

// Levels returns how deeply lists and maps are nested in the map, 0 without any.
func (m Map) Levels() int {
	deepest := 0
	for i := range m {
		deepest = max(deepest, m[i].Value.levels())
	}
	return deepest
}

func (v *Value) levels() int {
	switch v.Kind {
	case M:
		return 1 + v.Map.Levels()
	case L:
		deepest := 0
		for i := range v.List {
			deepest = max(deepest, v.List[i].levels())
		}
		return 1 + deepest
	}
	return 0
}

// InSet reports whether a set has a member.
func (v *Value) InSet(member string) bool {
	for _, s := range v.Set {
		if s == member {
			return true
		}
	}
	return false
}

// Union returns the set with the members of both.
func (v *Value) Union(o *Value) Value {
	set := append([]string(nil), v.Set...)
	for _, s := range o.Set {
		if !v.InSet(s) {
			set = append(set, s)
		}
	}
	sortSet(v.Kind, set)
	return Value{Kind: v.Kind, Set: set}
}

// Minus returns the set without the other's members. It may be empty, which a stored set may not.
func (v *Value) Minus(o *Value) Value {
	var set []string
	for _, s := range v.Set {
		if !o.InSet(s) {
			set = append(set, s)
		}
	}
	return Value{Kind: v.Kind, Set: set}
}

// sortSet sorts the members of a set, numbers by value.
func sortSet(kind Kind, set []string) {
	if kind == NS {
		sort.Slice(set, func(i, j int) bool { return CompareNumbers(set[i], set[j]) < 0 })
		return
	}
	sort.Strings(set)
}

// Number returns a value of type N; text is in normal form.
func Number(text string) Value { return Value{Kind: N, Str: text} }
