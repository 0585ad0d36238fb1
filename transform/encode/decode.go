package encode

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// KindOf returns the kind of a type descriptor such as SS.
func KindOf(name string) (change.Kind, bool) {
	for k := change.KindNull; k <= change.KindMap; k++ {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// ParseNatural is the inverse of Natural, given the value's type.
func ParseNatural(kind change.Kind, b []byte) (change.Value, error) {
	switch kind {
	case change.KindString, change.KindNumber:
		return change.Value{Kind: kind, S: string(b)}, nil
	case change.KindBinary:
		return change.Value{Kind: kind, S: base64.StdEncoding.EncodeToString(b)}, nil
	case change.KindBool:
		on, err := strconv.ParseBool(string(b))
		return change.Value{Kind: kind, Bool: on}, err
	case change.KindNull:
		return change.Value{Kind: kind}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var x any
	if err := dec.Decode(&x); err != nil {
		return change.Value{}, fmt.Errorf("parse %s: %w", kind, err)
	}
	if kind == change.KindStringSet || kind == change.KindNumberSet || kind == change.KindBinarySet {
		return parseSet(kind, x)
	}
	return parseTagged(x)
}

// parseSet reads a JSON array as a set of the kind.
func parseSet(kind change.Kind, x any) (change.Value, error) {
	list, ok := x.([]any)
	if !ok {
		return change.Value{}, fmt.Errorf("parse %s: not an array", kind)
	}
	member := kind - change.KindStringSet + change.KindString
	out := change.Value{Kind: kind}
	for _, e := range list {
		v, err := parseTagged(e)
		if err != nil {
			return out, err
		}
		v.Kind = member
		out.L = append(out.L, v)
	}
	return out, nil
}

// tags are the keys that Natural marks values with inside of collections.
var tags = map[string]change.Kind{"$n": change.KindNumber, "$b": change.KindBinary, "$ss": change.KindStringSet,
	"$ns": change.KindNumberSet, "$bs": change.KindBinarySet}

// parseTagged reads a value inside of a collection.
func parseTagged(x any) (change.Value, error) {
	switch x := x.(type) {
	case nil:
		return change.Value{Kind: change.KindNull}, nil
	case bool:
		return change.Value{Kind: change.KindBool, Bool: x}, nil
	case string:
		return change.Value{Kind: change.KindString, S: x}, nil
	case json.Number:
		return change.Value{Kind: change.KindNumber, S: x.String()}, nil
	case []any:
		out := change.Value{Kind: change.KindList}
		for _, e := range x {
			v, err := parseTagged(e)
			if err != nil {
				return out, err
			}
			out.L = append(out.L, v)
		}
		return out, nil
	case map[string]any:
		return parseMap(x)
	}
	return change.Value{}, fmt.Errorf("parse JSON: unexpected %T", x)
}

// parseMap reads a JSON object: a tagged value, or a map with keys escaped with $.
func parseMap(x map[string]any) (change.Value, error) {
	if len(x) == 1 {
		for k, v := range x {
			kind, tagged := tags[k]
			if text, ok := v.(string); tagged && ok {
				return change.Value{Kind: kind, S: text}, nil
			}
			if tagged {
				return parseSet(kind, v)
			}
		}
	}
	out := change.Value{Kind: change.KindMap}
	for k, e := range x {
		v, err := parseTagged(e)
		if err != nil {
			return out, err
		}
		k = strings.TrimPrefix(k, "$")
		out.M = append(out.M, change.Attr{Name: k, Value: v})
	}
	slices.SortFunc(out.M, func(a, b change.Attr) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// ParseDynamoJSON is the inverse of DynamoJSON.
func ParseDynamoJSON(b []byte) (change.Value, error) {
	var d change.Decoder
	img, err := d.Image(append(append([]byte(`{"v":`), b...), '}'))
	if err != nil {
		return change.Value{}, err
	}
	return img[0].Value, nil
}

// ParseInt64 is the inverse of Int64.
func ParseInt64(b []byte) (change.Value, error) {
	if len(b) != 8 {
		return change.Value{}, fmt.Errorf("parse int64: %d bytes instead of 8", len(b))
	}
	return change.Value{Kind: change.KindNumber, S: strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10)}, nil
}

// ParseTypes is the inverse of Types.
func ParseTypes(b []byte) (map[string]change.Kind, error) {
	var names map[string]string
	if err := json.Unmarshal(b, &names); err != nil {
		return nil, fmt.Errorf("parse type sidecar: %w", err)
	}
	out := make(map[string]change.Kind, len(names))
	for name, typ := range names {
		kind, ok := KindOf(typ)
		if !ok {
			return nil, fmt.Errorf("parse type sidecar: %q is not a type", typ)
		}
		out[name] = kind
	}
	return out, nil
}
