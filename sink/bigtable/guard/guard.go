// Package guard writes and reads the values of the guards: the cells of _tr_live and _tr_dead that
// name the item that is, or was, in a row, and since which version.
//
// The version is the cell's timestamp, and nothing but the timestamp decides about a write. The
// value serves code that starts from a row: verify, explain, and a pipeline that takes over a
// target. It is in clear or sealed, as its first byte indicates. Another first byte is refused
// (Rule 11):
//
//	0x01 pipeline 0x00 table 0x00 key
//	0x02 secret-id nonce ciphertext      the same, sealed: a key attribute is listed under pii (seal.go)
//
// Names of pipelines and tables contain no NUL. A table may hold guards of both forms.
package guard

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
)

const (
	plainForm  = 0x01
	sealedForm = 0x02
)

// Exclusive is the qualifier of an item in a row that only this item can produce.
const Exclusive = "i"

// Guard is the decoded value of a guard.
type Guard struct {
	Pipeline string
	Table    string // source table
	Key      []byte // canonical key of the item
	Sealed   bool
	Unknown  bool // sealed with a secret that is not known here: the other members are empty
}

// Qualifier returns the qualifier of an item in a row that other items may share.
func Qualifier(pipeline, table string, key []byte) (q [16]byte) {
	h := sha256.New()
	h.Write(fmt.Appendf(nil, "%s\x00%s\x00", pipeline, table))
	h.Write(key)
	copy(q[:], h.Sum(nil))
	return q
}

// Append appends the value of an item's guard in clear.
func Append(dst []byte, pipeline, table string, key []byte) []byte {
	dst = append(append(append(dst, plainForm), pipeline...), 0)
	return append(append(append(dst, table...), 0), key...)
}

// Read decodes a guard's value; a nil Sealer opens no sealed value. An error means that no build
// has written the value in this place: it is malformed, or it was copied from another row or
// column.
func (s *Sealer) Read(value, row, qualifier []byte) (Guard, error) {
	if len(value) == 0 {
		return Guard{}, errors.New("read guard: the value is empty")
	}
	switch value[0] {
	case plainForm:
		return read(value[1:], qualifier)
	case sealedForm:
		inner, known, err := s.open(value, row, qualifier)
		if err != nil {
			return Guard{}, fmt.Errorf("read guard: %w", err)
		}
		if !known {
			return Guard{Sealed: true, Unknown: true}, nil
		}
		g, err := read(inner, qualifier)
		g.Sealed = true
		return g, err
	}
	return Guard{}, fmt.Errorf("read guard: the value has the unknown form %d", value[0])
}

// read reads pipeline 0x00 table 0x00 key.
func read(value, qualifier []byte) (Guard, error) {
	pipeline, rest, one := bytes.Cut(value, []byte{0})
	table, key, two := bytes.Cut(rest, []byte{0})
	if !one || !two {
		return Guard{}, errors.New("read guard: the value does not name pipeline, table and key")
	}
	g := Guard{Pipeline: string(pipeline), Table: string(table), Key: key}
	if !belongs(g, qualifier) {
		return Guard{}, errors.New("read guard: the value belongs to another item than its column")
	}
	return g, nil
}

// belongs reports whether a guard with this qualifier can be the item's.
func belongs(g Guard, qualifier []byte) bool {
	if string(qualifier) == Exclusive {
		return true
	}
	q := Qualifier(g.Pipeline, g.Table, g.Key)
	return bytes.Equal(q[:], qualifier)
}
