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

// Schema is a primary key: a partition key and possibly a sort key.
type Schema struct {
	Hash  KeyAttr
	Range *KeyAttr
}

// Names returns the names of the key attributes, the partition key first.
func (s *Schema) Names() []string {
	if s.Range == nil {
		return []string{s.Hash.Name}
	}
	return []string{s.Hash.Name, s.Range.Name}
}

// Has reports whether an attribute is part of the key.
func (s *Schema) Has(name string) bool {
	return s.Hash.Name == name || s.Range != nil && s.Range.Name == name
}

// The largest sizes of key values, in bytes.
const (
	maxHashKey  = 2048
	maxRangeKey = 1024
)

// Key is an item's place in the order of a Scan: hash of the partition key (8 bytes), length of the
// partition key (2 bytes), the partition key, and the sort key in sortable form. So the items of a
// partition are adjacent, by sort key.
type Key string

// Hash returns the place of a key in the key space, 0 for the empty key.
func (k Key) Hash() uint64 {
	var b [8]byte
	copy(b[:], k)
	return binary.BigEndian.Uint64(b[:])
}

// KeyOf returns the key of an item or a key map with valid key attributes.
func (s *Schema) KeyOf(m attr.Map) Key {
	b := s.Prefix(m.Get(s.Hash.Name))
	if s.Range != nil {
		b = Sortable(b, m.Get(s.Range.Name))
	}
	return Key(b)
}

// Prefix returns the common prefix of the keys of a partition.
func (s *Schema) Prefix(hash *attr.Value) []byte {
	b := make([]byte, 8, 8+2+len(hash.Str)+40)
	b = binary.BigEndian.AppendUint16(b, uint16(len(hash.Str)))
	b = append(b, hash.Str...)
	binary.BigEndian.PutUint64(b, hashOf(hash.Str))
	return b
}

// hashOf returns a hash of a partition key that is even over 64 bits.
func hashOf(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Sortable appends a key value in a form in which bytes compare as the values do.
func Sortable(b []byte, v *attr.Value) []byte {
	if v.Kind == attr.N {
		return attr.AppendSortable(b, v.Str)
	}
	return append(b, v.Str...)
}

// KeyMap returns the key attributes of an item, in the schema's order.
func (s *Schema) KeyMap(m attr.Map) attr.Map {
	key := attr.Map{{Name: s.Hash.Name, Value: *m.Get(s.Hash.Name)}}
	if s.Range != nil {
		key = append(key, attr.Attr{Name: s.Range.Name, Value: *m.Get(s.Range.Name)})
	}
	return key
}

// CheckKey checks the key of a request: it must have exactly the key attributes, with their types.
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

// CheckItem checks the key attributes of an item to be put.
func (s *Schema) CheckItem(item attr.Map) *wire.Error {
	if err := checkItemKey(item, &s.Hash, true); err != nil || s.Range == nil {
		return err
	}
	return checkItemKey(item, s.Range, false)
}

// checkItemKey checks one key attribute of an item to be put.
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

// CheckNotEmpty refuses a key with an empty string or binary, and checks nothing else.
func (s *Schema) CheckNotEmpty(key attr.Map) *wire.Error {
	for i, name := range s.Names() {
		if v := key.Get(name); v != nil && v.Str == "" && (v.Kind == attr.S || v.Kind == attr.B) {
			return checkKeyValue(name, v, i == 0)
		}
	}
	return nil
}

// checkKeyValue checks the size of a key attribute's value.
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
