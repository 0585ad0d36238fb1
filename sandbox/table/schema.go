package table

import (
	"encoding/binary"
	"hash/fnv"
	"math/bits"
	"slices"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// KeyAttr is a key attribute: its name and its type, S, N or B.
type KeyAttr struct {
	Name string
	Kind attr.Kind
}

// Schema is the key of a table or an index. A table and a local index have one partition key and at
// most one sort key; a global index has up to four attributes of each, in their order.
type Schema struct {
	Hash, Range []KeyAttr
}

// All returns the key attributes, the partition key's first.
func (s *Schema) All() []KeyAttr { return append(s.Hash[:len(s.Hash):len(s.Hash)], s.Range...) }

// Names returns the names of the key attributes, the partition key's first.
func (s *Schema) Names() []string {
	names := make([]string, 0, len(s.Hash)+len(s.Range))
	for _, k := range s.Hash {
		names = append(names, k.Name)
	}
	for _, k := range s.Range {
		names = append(names, k.Name)
	}
	return names
}

// Has reports whether an attribute is part of the key.
func (s *Schema) Has(name string) bool {
	is := func(k KeyAttr) bool { return k.Name == name }
	return slices.ContainsFunc(s.Hash, is) || slices.ContainsFunc(s.Range, is)
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

// Part returns in which of n equal parts of the key space a hash is.
func Part(hash uint64, n int) int {
	part, _ := bits.Mul64(hash, uint64(n))
	return int(part)
}

// KeyOf returns the key of an item of a table, or of a key map with valid key attributes.
func (s *Schema) KeyOf(m attr.Map) Key {
	b := s.Prefix(m)
	if len(s.Range) > 0 {
		b = Sortable(b, m.Get(s.Range[0].Name))
	}
	return Key(b)
}

// Position returns the place of an item in an index with this key: by partition, by one sort key
// attribute after the other, and by the item's key in the table.
func (s *Schema) Position(m attr.Map, key Key) []byte {
	at := s.Prefix(m)
	for _, k := range s.Range {
		at = appendPart(at, m.Get(k.Name))
	}
	return append(at, key...)
}

// Prefix returns the common prefix of the keys of the partition that an item or a key map is in.
func (s *Schema) Prefix(m attr.Map) []byte {
	first := m.Get(s.Hash[0].Name).Str
	b := make([]byte, 8, 8+2+len(first)+40)
	for _, k := range s.Hash {
		v := m.Get(k.Name)
		b = binary.BigEndian.AppendUint16(b, uint16(len(v.Str)))
		b = append(b, v.Str...)
	}
	if len(s.Hash) > 1 {
		first = string(b[8:])
	}
	binary.BigEndian.PutUint64(b, hashOf(first))
	return b
}

// appendPart appends one of several parts, so that the whole compares by the first part that
// differs: each part has an end that sorts before whatever a longer part has there.
func appendPart(b []byte, v *attr.Value) []byte {
	for _, c := range Sortable(nil, v) {
		if b = append(b, c); c == 0 {
			b = append(b, 0xff)
		}
	}
	return append(b, 0, 1)
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
	var key attr.Map
	for _, k := range s.All() {
		key = append(key, attr.Attr{Name: k.Name, Value: *m.Get(k.Name)})
	}
	return key
}

// CheckKey checks the key of a request: it must have exactly the key attributes, with their types.
func (s *Schema) CheckKey(key attr.Map) *wire.Error {
	all := s.All()
	if len(key) != len(all) {
		return ErrKeySchema
	}
	for i, k := range all {
		v := key.Get(k.Name)
		if v == nil || v.Kind != k.Kind {
			return ErrKeySchema
		}
		if err := checkKeyValue(k.Name, v, i < len(s.Hash)); err != nil {
			return err
		}
	}
	return nil
}

// ErrKeySchema is the error for a key of other attributes or types.
var ErrKeySchema = wire.Invalid("The provided key element does not match the schema")

// CheckItem checks the key attributes of an item to be put.
func (s *Schema) CheckItem(item attr.Map) *wire.Error {
	for i, k := range s.All() {
		if err := checkItemKey(item, &k, i < len(s.Hash)); err != nil {
			return err
		}
	}
	return nil
}

// Holds reports whether an item is in an index with this key: it has all key attributes, with their
// types, not empty and not too large. Others are not in the index, which a new index may meet.
func (s *Schema) Holds(item attr.Map) bool {
	for _, k := range s.All() {
		v := item.Get(k.Name)
		if v == nil || v.Kind != k.Kind || v.Str == "" {
			return false
		}
	}
	return s.checkSizes(item) == nil
}

// checkSizes refuses key attributes that are too large, those of a kind together. Missing ones have
// no size.
func (s *Schema) checkSizes(m attr.Map) *wire.Error {
	size := func(keys []KeyAttr) (n int) {
		for _, k := range keys {
			if v := m.Get(k.Name); v != nil && k.Kind != attr.N {
				n += len(v.Str)
			}
		}
		return n
	}
	switch {
	case size(s.Hash) > maxHashKey:
		return errHashSize
	case size(s.Range) > maxRangeKey:
		return errRangeSize
	}
	return nil
}

var (
	errHashSize  = wire.BadValue("Size of hashkey has exceeded the maximum size limit of2048 bytes")
	errRangeSize = wire.BadValue("Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
)

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
	for _, name := range s.Names() {
		if v := key.Get(name); v != nil && v.Str == "" && (v.Kind == attr.S || v.Kind == attr.B) {
			return checkKeyValue(name, v, true)
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
		return errHashSize
	case !hash && len(v.Str) > maxRangeKey:
		return errRangeSize
	}
	return nil
}
