package encode

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// safeDigits is how many digits of a number every JSON reader preserves.
const safeDigits = 15

// JSON appends plain JSON for people and for SQL: numbers bare up to 15 digits and as strings
// beyond, binary as base64, sets as sorted arrays, keys sorted. A string that is a JSON object or
// array is copied byte for byte. Types are lost; DynamoJSON is the lossless form.
func JSON(dst []byte, v *change.Value) ([]byte, error) {
	if v.Kind == change.KindString && holdsJSON(v.S) {
		return append(dst, v.S...), nil
	}
	return appendNested(dst, v, false)
}

// holdsJSON reports whether a string is a JSON object or array.
func holdsJSON(s string) bool {
	t := strings.TrimLeft(s, " \t\r\n")
	return t != "" && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(s))
}

// Document appends attributes as one JSON object with sorted names.
func Document(dst []byte, attrs []change.Attr) ([]byte, error) {
	return appendMap(dst, attrs, false)
}

// appendNested appends JSON. If tagged, it marks values for which JSON has no form: {"$n":"…"} for
// numbers of more than 15 digits, {"$b":"…"} for binary, {"$ss":[…]}, {"$ns":[…]}, {"$bs":[…]} for
// sets inside of collections; a map key that begins with $ gets one more. The outermost set needs
// no tag: the attribute's type is known.
func appendNested(dst []byte, v *change.Value, tagged bool) ([]byte, error) {
	switch v.Kind {
	case change.KindStringSet, change.KindNumberSet, change.KindBinarySet:
		return appendSet(dst, v, tagged)
	}
	return appendValue(dst, v, tagged)
}

// appendValue appends any value but a set that is the attribute itself.
func appendValue(dst []byte, v *change.Value, tagged bool) (_ []byte, err error) {
	switch v.Kind {
	case change.KindString:
		return change.AppendString(dst, v.S), nil
	case change.KindNumber:
		return appendJSONNumber(dst, v.S, tagged)
	case change.KindBinary:
		return appendTagged(dst, "b", tagged, func(dst []byte) ([]byte, error) { return change.AppendString(dst, v.S), nil })
	case change.KindBool:
		return strconv.AppendBool(dst, v.Bool), nil
	case change.KindNull:
		return append(dst, "null"...), nil
	case change.KindList:
		dst = append(dst, '[')
		for i := range v.L {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendValue(dst, &v.L[i], tagged); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case change.KindMap:
		return appendMap(dst, v.M, tagged)
	}
	tag := strings.ToLower(v.Kind.String())
	return appendTagged(dst, tag, tagged, func(dst []byte) ([]byte, error) { return appendSet(dst, v, tagged) })
}

// appendTagged appends what inner appends, inside of {"$tag":…} if tagged.
func appendTagged(dst []byte, tag string, tagged bool, inner func([]byte) ([]byte, error)) ([]byte, error) {
	if !tagged {
		return inner(dst)
	}
	dst = append(append(append(dst, `{"$`...), tag...), `":`...)
	dst, err := inner(dst)
	return append(dst, '}'), err
}

// appendJSONNumber appends a number bare if every JSON reader preserves its digits, else as text.
func appendJSONNumber(dst []byte, s string, tagged bool) ([]byte, error) {
	n := len(dst)
	dst, err := Number(dst, s)
	if err != nil || digitsOf(string(dst[n:])) <= safeDigits {
		return dst, err
	}
	text := string(dst[n:])
	return appendTagged(dst[:n], "n", tagged, func(dst []byte) ([]byte, error) {
		return append(append(append(dst, '"'), text...), '"'), nil
	})
}

// appendMap appends an object with sorted keys.
func appendMap(dst []byte, attrs []change.Attr, tagged bool) (_ []byte, err error) {
	order := make([]int, len(attrs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(attrs[a].Name, attrs[b].Name) })
	dst = append(dst, '{')
	for i, at := range order {
		if i > 0 {
			dst = append(dst, ',')
		}
		name := attrs[at].Name
		if tagged && strings.HasPrefix(name, "$") {
			name = "$" + name
		}
		dst = append(change.AppendString(dst, name), ':')
		if dst, err = appendValue(dst, &attrs[at].Value, tagged); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendSet appends an array of the sorted members.
func appendSet(dst []byte, v *change.Value, tagged bool) ([]byte, error) {
	members, err := Members(v)
	if err != nil {
		return dst, err
	}
	dst = append(dst, '[')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch v.Kind {
		case change.KindNumberSet:
			if dst, err = appendJSONNumber(dst, string(m), tagged); err != nil {
				return dst, err
			}
		case change.KindBinarySet:
			dst = append(dst, '"')
			dst = appendBase64(dst, m)
			dst = append(dst, '"')
		default:
			dst = change.AppendString(dst, string(m))
		}
	}
	return append(dst, ']'), nil
}

// Members returns a set's members as bytes, each once, in byte order: strings raw, numbers
// canonical, binaries decoded.
func Members(v *change.Value) ([][]byte, error) {
	out := make([][]byte, 0, len(v.L))
	for i := range v.L {
		m, err := Natural(nil, &v.L[i])
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	slices.SortFunc(out, bytes.Compare)
	return slices.CompactFunc(out, bytes.Equal), nil
}

func appendBase64(dst, b []byte) []byte { return base64.StdEncoding.AppendEncode(dst, b) }
