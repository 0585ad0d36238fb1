// Package table holds the items of one sandbox table: its key schema, the order of its
// items, and the index of what expires when. It knows nothing of requests.
package table

import (
	"encoding/binary"
	"hash/fnv"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
	"github.com/tailrace-cdc/replicator/sandbox/wire"
)

// KeyAttr is a key attribute: its name and its type, S, N or B.
type KeyAttr struct {
	Name string
	Kind attr.Kind
}

// Schema is a primary key: a partition key and perhaps a sort key.
type Schema struct {
	Hash  KeyAttr
	Range *KeyAttr
}

// Names are the key attributes' names.
func (s *Schema) Names() []string {
	if s.Range == nil {
		return []string{s.Hash.Name}
	}
	return []string{s.Hash.Name, s.Range.Name}
}

// Has says whether an attribute is part of the key.
func (s *Schema) Has(name string) bool {
	return s.Hash.Name == name || s.Range != nil && s.Range.Name == name
}

// Sizes of key values, in bytes.
const (
	maxHashKey  = 2048
	maxRangeKey = 1024
)

// Key is where an item stands: hash of the partition key (8 bytes), length of the
// partition key (2 bytes), the partition key, and the sort key in sortable form. Keys
// of one partition are neighbours in the order of their sort keys.
type Key string

// KeyOf is the key of an item or of a key map, whose key attributes must be valid.
func (s *Schema) KeyOf(m attr.Map) Key {
	b := s.Prefix(m.Get(s.Hash.Name))
	if s.Range != nil {
		b = Sortable(b, m.Get(s.Range.Name))
	}
	return Key(b)
}

// Prefix is what the keys of all items of a partition begin with.
func (s *Schema) Prefix(hash *attr.Value) []byte {
	b := make([]byte, 8, 8+2+len(hash.Str)+40)
	b = binary.BigEndian.AppendUint16(b, uint16(len(hash.Str)))
	b = append(b, hash.Str...)
	binary.BigEndian.PutUint64(b, spread(hash.Str))
	return b
}

// spread hashes a partition key evenly over 64 bits.
func spread(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // a hash never fails
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Sortable appends a key value so that bytes compare as the values do.
func Sortable(b []byte, v *attr.Value) []byte {
	if v.Kind == attr.N {
		return attr.AppendSortable(b, v.Str)
	}
	return append(b, v.Str...)
}

// KeyMap cuts an item down to its key, in the schema's order.
func (s *Schema) KeyMap(m attr.Map) attr.Map {
	key := attr.Map{{Name: s.Hash.Name, Value: *m.Get(s.Hash.Name)}}
	if s.Range != nil {
		key = append(key, attr.Attr{Name: s.Range.Name, Value: *m.Get(s.Range.Name)})
	}
	return key
}

// CheckKey checks a key that a request names.
func (s *Schema) CheckKey(key attr.Map) *wire.Error {
	names := s.Names()
	if len(key) != len(names) {
		return errKeySchema
	}
	for i, name := range names {
		k := &s.Hash
		if i > 0 {
			k = s.Range
		}
		v := key.Get(name)
		if v == nil || v.Kind != k.Kind {
			return errKeySchema
		}
		if err := checkKeyValue(name, v, i == 0); err != nil {
			return err
		}
	}
	return nil
}

var errKeySchema = wire.Invalid("The provided key element does not match the schema")

// CheckItem checks the key attributes of an item that is to be put.
func (s *Schema) CheckItem(item attr.Map) *wire.Error {
	if err := checkItemKey(item, &s.Hash, true); err != nil || s.Range == nil {
		return err
	}
	return checkItemKey(item, s.Range, false)
}

func checkItemKey(item attr.Map, k *KeyAttr, hash bool) *wire.Error {
	v := item.Get(k.Name)
	if v == nil {
		return wire.BadValue("Missing the key %s in the item", k.Name)
	}
	if v.Kind != k.Kind {
		return wire.BadValue("Type mismatch for key %s expected: %s actual: %s", k.Name, k.Kind, v.Kind)
	}
	return checkKeyValue(k.Name, v, hash)
}

// CheckNotEmpty refuses a key with an empty string or binary, and leaves everything else about it to CheckKey.
func (s *Schema) CheckNotEmpty(key attr.Map) *wire.Error {
	for i, name := range s.Names() {
		if v := key.Get(name); v != nil && v.Str == "" && (v.Kind == attr.S || v.Kind == attr.B) {
			return checkKeyValue(name, v, i == 0)
		}
	}
	return nil
}

func checkKeyValue(name string, v *attr.Value, hash bool) *wire.Error {
	switch {
	case v.Kind == attr.N:
	case v.Str == "" && v.Kind == attr.S:
		return wire.Invalid("One or more parameter values are not valid. The AttributeValue for a key attribute "+
			"cannot contain an empty string value. Key: %s", name)
	case v.Str == "":
		return wire.Invalid("One or more parameter values are not valid. The AttributeValue for a key attribute "+
			"cannot contain an empty binary value. Key: %s", name)
	case hash && len(v.Str) > maxHashKey:
		return wire.BadValue("Size of hashkey has exceeded the maximum size limit of2048 bytes")
	case !hash && len(v.Str) > maxRangeKey:
		return wire.BadValue("Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	}
	return nil
}
