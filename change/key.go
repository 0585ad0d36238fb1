package change

import "fmt"

// KeyAttr is one attribute of a table's primary key.
type KeyAttr struct {
	Name string `json:"name"`
	Type byte   `json:"type"` // 'S', 'N' or 'B'
}

// KeySchema is a table's primary key: a partition key and maybe a sort key.
type KeySchema struct {
	Partition KeyAttr  `json:"partition"`
	Sort      *KeyAttr `json:"sort,omitempty"`
}

// Canonical appends the canonical form of an item's key: {"pk":{"S":"hats"},"sk":{"N":"1"}}, in the
// order of the schema with canonical numbers. It is injective and does not depend on the notation
// of a record. Guards, hashes and lanes derive from it. keys may contain further attributes.
func (k KeySchema) Canonical(dst []byte, keys Image) ([]byte, error) {
	dst, err := appendKeyAttr(append(dst, '{'), k.Partition, keys)
	if err != nil {
		return dst, err
	}
	if k.Sort != nil {
		if dst, err = appendKeyAttr(append(dst, ','), *k.Sort, keys); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendKeyAttr appends one member of a canonical key.
func appendKeyAttr(dst []byte, a KeyAttr, keys Image) ([]byte, error) {
	v := keys.Get(a.Name)
	if v == nil {
		return dst, fmt.Errorf("key attribute %q is missing", a.Name)
	}
	if t := v.Kind.String(); t != string(a.Type) {
		return dst, fmt.Errorf("key attribute %q is of type %s, the table's schema says %c", a.Name, t, a.Type)
	}
	dst = append(AppendString(dst, a.Name), ':')
	return v.AppendJSON(dst), nil
}

// KeyReader reads the keys of items in typed JSON. It is for one goroutine.
type KeyReader struct {
	schema  KeySchema
	decoder Decoder
}

// NewKeyReader returns the reader for the items of a table.
func NewKeyReader(s KeySchema) *KeyReader { return &KeyReader{schema: s} }

// Of appends the canonical key of an item. Nothing else of the item is decoded.
func (k *KeyReader) Of(dst, item []byte) ([]byte, error) {
	k.decoder.Reset()
	img, err := k.decoder.PartialImage(item, func(name string) bool {
		return name == k.schema.Partition.Name || k.schema.Sort != nil && name == k.schema.Sort.Name
	})
	if err != nil {
		return dst, err
	}
	return k.schema.Canonical(dst, img)
}

// HashKey returns the FNV-1a hash of a canonical key. It is the same in every process, so that all
// changes of an item go to the same lane.
func HashKey(canonical []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range canonical {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// HashText returns the hash of a key as commands, logs and files show it.
func HashText(h uint64) string { return fmt.Sprintf("%016x", h) }
