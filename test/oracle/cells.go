package oracle

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"io"
	"math"
)

// unmapped is the time of a cell that has the version of its write as its timestamp, which the
// source does not contain.
const unmapped = math.MinInt64

// cell is one wanted cell: the source's projection has it.
type cell struct {
	row       []byte
	family    int // index
	qualifier []byte
	time      int64  // ms, or unmapped
	value     []byte // see valueKey
	keyHash   uint64
	rawJSON   bool // a document, whose canonical form is compared
}

// sameColumn reports whether two cells of a row are in one column.
func (c *cell) sameColumn(other *cell) bool {
	return c.family == other.family && bytes.Equal(c.qualifier, other.qualifier)
}

// order compares cells in the order of Bigtable's rows and, within a column, newest first.
func order(a, b *cell) int {
	return cmp.Or(bytes.Compare(a.row, b.row), cmp.Compare(a.family, b.family),
		bytes.Compare(a.qualifier, b.qualifier), cmp.Compare(b.time, a.time), cmp.Compare(a.keyHash, b.keyHash))
}

// valueKey returns what is compared for a value: 16 bytes of its hash, or the whole value.
func valueKey(value []byte, whole bool) []byte {
	if whole {
		return value
	}
	sum := sha256.Sum256(value)
	return sum[:16]
}

// sorted is the wanted cells in order.
type sorted []cell

// next returns the next cell; io.EOF after the last.
func (s *sorted) next() (c cell, err error) {
	if len(*s) == 0 {
		return c, io.EOF
	}
	c, *s = (*s)[0], (*s)[1:]
	return c, nil
}
