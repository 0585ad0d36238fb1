package attr

import (
	"encoding/base64"
	"fmt"
	"sort"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// MaxLevels is how deeply lists and maps may be nested.
const MaxLevels = 32

// ErrLevels is the service's error for a value that is nested more deeply.
var ErrLevels = wire.Invalid("Nesting Levels have exceeded supported limits: Attributes nested beyond 32 levels are " +
	"not supported")

// maxName is the length of the longest attribute name, in bytes.
const maxName = 64<<10 - 1

// CheckName refuses an attribute name that is empty or too long.
func CheckName(name string) *wire.Error {
	switch {
	case name == "":
		return wire.Invalid("Empty attribute name")
	case len(name) > maxName:
		return wire.Invalid("Attribute name is too large, must be less than %d bytes", maxName+1)
	}
	return nil
}

// CheckShape refuses a value with wrong JSON types, with a SerializationException. The service
// checks this before anything else.
func CheckShape(n *wire.Node) *wire.Error {
	switch n.Kind {
	case wire.Object:
	case wire.Array:
		return wire.Unreadable("Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue")
	default:
		return wire.Unreadable("Unexpected value type in payload")
	}
	for i := range n.Kids {
		k := &n.Kids[i]
		if k.Kind == wire.Null {
			continue
		}
		if err := checkType(k); err != nil {
			return err
		}
	}
	return nil
}

// checkType checks the JSON under a type's name.
func checkType(k *wire.Node) *wire.Error {
	switch KindOf(k.Name) {
	case S, N:
		return wire.Scalar(k, wire.Text, "String")
	case Bool, Null:
		return wire.Scalar(k, wire.Boolean, "Boolean")
	case B:
		return checkBlob(k)
	case SS, NS:
		return checkList(k, func(e *wire.Node) *wire.Error { return wire.Scalar(e, wire.Text, "String") })
	case BS:
		return checkList(k, checkBlob)
	case L:
		return checkList(k, CheckShape)
	case M:
		return CheckMapShape(k)
	}
	return nil
}

// CheckMapShape is CheckShape for a map of values.
func CheckMapShape(n *wire.Node) *wire.Error {
	switch n.Kind {
	case wire.Object:
	case wire.Array:
		return wire.Unreadable("Unrecognized collection type java.util.Map<java.lang.String, " +
			"com.amazonaws.dynamodb.v20120810.AttributeValue>")
	default:
		return wire.Unreadable("Unexpected field type")
	}
	for i := range n.Kids {
		if n.Kids[i].Kind == wire.Null {
			continue
		}
		if err := CheckShape(&n.Kids[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkList checks a JSON array and each of its elements.
func checkList(n *wire.Node, each func(*wire.Node) *wire.Error) *wire.Error {
	switch n.Kind {
	case wire.Array:
	case wire.Object:
		return wire.Unreadable("Start of structure or map found where not expected")
	default:
		return wire.Unreadable("Unexpected field type")
	}
	for i := range n.Kids {
		if n.Kids[i].Kind == wire.Null {
			continue
		}
		if err := each(&n.Kids[i]); err != nil {
			return err
		}
	}
	return nil
}

// strictBase64 refuses unused bits in the last character that are not zero, as the service does.
var strictBase64 = base64.StdEncoding.Strict()

// checkBlob checks the base64 text of a binary.
func checkBlob(n *wire.Node) *wire.Error {
	switch n.Kind {
	case wire.String:
	case wire.Array:
		return wire.Unreadable("Unrecognized collection type class java.nio.ByteBuffer")
	case wire.Object:
		return wire.Unreadable("Start of structure or map found where not expected")
	default:
		return wire.Unreadable("only base-64-encoded strings are convertible to bytes")
	}
	if len(n.Text)%4 != 0 {
		return wire.Unreadable(fmt.Sprintf("Base64 encoded length is expected a multiple of 4 bytes but found: %d",
			len(n.Text)))
	}
	if _, err := strictBase64.DecodeString(n.Text); err != nil || strings.ContainsAny(n.Text, "\r\n") {
		return wire.Unreadable("Invalid last non-pad Base64 character dectected")
	}
	return nil
}

// DecodeMap reads a map of attribute values into normal form. Its shape must be checked.
func DecodeMap(n *wire.Node) (Map, *wire.Error) { return decodeMap(n, 0) }

// Decode reads one attribute value into normal form. Its shape must be checked.
func Decode(n *wire.Node) (Value, *wire.Error) { return decode(n, 0) }

// decodeMap is DecodeMap for a map that is nested in level lists and maps.
func decodeMap(n *wire.Node, level int) (Map, *wire.Error) {
	m := make(Map, 0, len(n.Kids))
	sorted := true
	for i := range n.Kids {
		k := &n.Kids[i]
		if k.Kind == wire.Null {
			return nil, wire.Invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
		}
		if err := CheckName(k.Name); err != nil {
			return nil, err
		}
		v, err := decode(k, level)
		if err != nil {
			return nil, err
		}
		sorted = sorted && (i == 0 || m[len(m)-1].Name < k.Name)
		m = append(m, Attr{k.Name, v})
	}
	if !sorted {
		sort.SliceStable(m, func(i, j int) bool { return m[i].Name < m[j].Name })
		m = lastOfEach(m)
	}
	return m, nil
}

// lastOfEach removes, of attributes with the same name, all but the last.
func lastOfEach(m Map) Map {
	out := m[:0]
	for i := range m {
		if i+1 == len(m) || m[i+1].Name != m[i].Name {
			out = append(out, m[i])
		}
	}
	return out
}

// decode is Decode for a value that is nested in level lists and maps.
func decode(n *wire.Node, level int) (v Value, err *wire.Error) {
	if level > MaxLevels {
		return v, ErrLevels
	}
	types := 0
	for i := range n.Kids {
		k := &n.Kids[i]
		kind := KindOf(k.Name)
		if kind == None || k.Kind == wire.Null {
			continue
		}
		types++
		if v, err = decodeAs(kind, k, level); err != nil {
			return v, err
		}
	}
	switch types {
	case 0:
		return v, wire.Invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	case 1:
		return v, nil
	}
	return v, wire.Invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the " +
		"supported datatypes")
}

// decodeAs reads the JSON under a type's name.
func decodeAs(kind Kind, n *wire.Node, level int) (v Value, err *wire.Error) {
	v.Kind = kind
	switch kind {
	case S:
		v.Str = n.Text
	case N:
		v.Str, err = Normalize(n.Text)
	case B:
		v.Str = blob(n.Text)
	case Bool:
		v.True = n.Text == "true"
	case Null:
		v.True = true
		if n.Text != "true" {
			err = wire.BadValue("Null attribute value types must have the value of true")
		}
	case SS, NS, BS:
		err = v.decodeSet(n)
	case M:
		v.Map, err = decodeMap(n, level+1)
	case L:
		v.List = make([]Value, len(n.Kids))
		for i := range n.Kids {
			if v.List[i], err = decode(&n.Kids[i], level+1); err != nil {
				return v, err
			}
		}
	}
	return v, err
}

// blob returns the bytes of a checked base64 text.
func blob(text string) string {
	b, _ := base64.StdEncoding.DecodeString(text)
	return string(b)
}

// decodeSet reads the members of a set, which may be neither empty nor repeated.
func (v *Value) decodeSet(n *wire.Node) *wire.Error {
	if len(n.Kids) == 0 {
		return wire.BadValue("%s", map[Kind]string{SS: "An string set  may not be empty",
			NS: "An number set  may not be empty", BS: "Binary sets should not be empty"}[v.Kind])
	}
	v.Set = make([]string, len(n.Kids))
	for i := range n.Kids {
		switch text := n.Kids[i].Text; v.Kind {
		case NS:
			var err *wire.Error
			if v.Set[i], err = Normalize(text); err != nil {
				return err
			}
		case BS:
			v.Set[i] = blob(text)
		default:
			v.Set[i] = text
		}
	}
	sortSet(v.Kind, v.Set)
	for i := 1; i < len(v.Set); i++ {
		if v.Set[i] == v.Set[i-1] {
			return v.duplicates(n)
		}
	}
	return nil
}

// duplicates returns the error for a set with repeated members.
func (v *Value) duplicates(n *wire.Node) *wire.Error {
	shown := make([]string, len(n.Kids))
	for i := range n.Kids {
		shown[i] = n.Kids[i].Text
	}
	list := "[" + strings.Join(shown, ", ") + "]"
	switch v.Kind {
	case NS:
		return wire.Invalid("Input collection contains duplicates")
	case BS:
		return wire.BadValue("Input collection %sof type BS contains duplicates.", list)
	}
	return wire.BadValue("Input collection %s contains duplicates.", list)
}

// Stored returns an item that AppendJSON wrote.
func Stored(json []byte) Map {
	n, err := wire.Parse(string(json))
	if err != nil {
		return nil
	}
	m, bad := DecodeMap(n)
	if bad != nil {
		return nil
	}
	return m
}
