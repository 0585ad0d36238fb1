package attr

import (
	"encoding/base64"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// AppendJSON appends the map as the wire's JSON object.
func (m Map) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	for i := range m {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, m[i].Name)
		b = append(b, ':')
		b = m[i].Value.AppendJSON(b)
	}
	return append(b, '}')
}

// AppendJSON appends the value as the wire's typed JSON.
func (v *Value) AppendJSON(b []byte) []byte {
	b = append(b, '{', '"')
	b = append(b, v.Kind.String()...)
	b = append(b, '"', ':')
	switch v.Kind {
	case S, N:
		b = wire.AppendString(b, v.Str)
	case B:
		b = appendBlob(b, v.Str)
	case Bool, Null:
		if v.True {
			b = append(b, "true"...)
		} else {
			b = append(b, "false"...)
		}
	case SS, NS, BS:
		b = v.appendSet(b)
	case M:
		b = v.Map.AppendJSON(b)
	case L:
		b = append(b, '[')
		for i := range v.List {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.List[i].AppendJSON(b)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendSet appends the members of a set.
func (v *Value) appendSet(b []byte) []byte {
	b = append(b, '[')
	for i, s := range v.Set {
		if i > 0 {
			b = append(b, ',')
		}
		if v.Kind == BS {
			b = appendBlob(b, s)
		} else {
			b = wire.AppendString(b, s)
		}
	}
	return append(b, ']')
}

// appendBlob appends a binary as base64.
func appendBlob(b []byte, s string) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, []byte(s))
	return append(b, '"')
}

// Size returns the item's size as the service counts it for the limit of 400 KB, for pages and for
// capacity: names and values, 3 bytes for a list or map and 1 for each of its entries.
func (m Map) Size() int {
	size := 0
	for i := range m {
		size += len(m[i].Name) + m[i].Value.Size()
	}
	return size
}

// Size returns the value's part of Map.Size.
func (v *Value) Size() int {
	switch v.Kind {
	case S, B:
		return len(v.Str)
	case N:
		return numberSize(v.Str)
	case SS, BS:
		size := 0
		for _, s := range v.Set {
			size += len(s)
		}
		return size
	case NS:
		size := 0
		for _, s := range v.Set {
			size += numberSize(s)
		}
		return size
	case M:
		return 3 + len(v.Map) + v.Map.Size()
	case L:
		size := 3 + len(v.List)
		for i := range v.List {
			size += v.List[i].Size()
		}
		return size
	}
	return 1
}
