package object

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"math/bits"
	"unicode/utf8"
)

// sum is an event's item in the digest.
type sum struct {
	hash [sha256.Size]byte
	null bool
}

func sumOf(item []byte) sum {
	if len(item) == 0 {
		return sum{null: true}
	}
	return sum{hash: sha256.Sum256(item)}
}

// digest is the SHA-256 over ids and items, see the package.
type digest struct {
	h   hash.Hash
	buf []byte
}

func newDigest() *digest { return &digest{h: sha256.New()} }

func (d *digest) add(id []byte, s sum) {
	d.buf = binary.BigEndian.AppendUint64(d.buf[:0], uint64(len(id)))
	d.buf = append(d.buf, id...)
	if s.null {
		d.buf = append(d.buf, 0)
	} else {
		d.buf = append(append(d.buf, 1), s.hash[:]...)
	}
	d.h.Write(d.buf)
}

func (d *digest) String() string { return hex.EncodeToString(d.h.Sum(nil)) }

var errItem = errors.New("item is not a JSON object in UTF-8")

// compact returns an item without white space between its tokens: item itself, where it has none,
// or a copy in buf. It is nil for an item that is absent. Only the nesting is checked, for a full
// parse would take longer than all the rest.
func compact(item, buf []byte) (out, scratch []byte, err error) {
	item = bytes.TrimSpace(item)
	if len(item) == 0 || string(item) == "null" {
		return nil, buf, nil
	}
	if item[0] != '{' || !utf8.Valid(item) {
		return nil, buf, errItem
	}
	copied, from := false, 0 // item[from:] is not copied yet
	var open [256]byte       // the brackets that are open; DynamoDB allows 32 levels, of two brackets each
	depth := 0
	for i := 0; i < len(item); {
		switch c := item[i]; c {
		case '"':
			if i = stringEnd(item, i+1); i < 0 {
				return nil, buf, errItem
			}
			continue
		case ' ', '\n', '\r', '\t':
			if !copied {
				copied, buf = true, buf[:0]
			}
			buf = append(buf, item[from:i]...)
			from = i + 1
		case '{', '[':
			if depth == len(open) {
				return nil, buf, errItem
			}
			open[depth] = c + 2 // the bracket that closes it
			depth++
		case '}', ']':
			if depth--; depth < 0 || open[depth] != c || depth == 0 && i != len(item)-1 {
				return nil, buf, errItem
			}
		default:
			if c < ' ' {
				return nil, buf, errItem
			}
		}
		i++
	}
	if depth != 0 {
		return nil, buf, errItem
	}
	if copied {
		buf = append(buf, item[from:]...)
		return buf, buf, nil
	}
	return item, buf, nil
}

// stringEnd returns the index past the closing quote of a string with content that starts at i;
// it returns -1 if there is none. Control characters must be escaped: a line break would end the
// line.
func stringEnd(b []byte, i int) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	for i < len(b) {
		if i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, slash := x^(low*'"'), x^(low*'\\')
			found := (quote-low)&^quote | (slash-low)&^slash | (x-low*' ')&^x
			if found&high == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found&high) >> 3
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			i += 2
		case c < ' ':
			return -1
		default:
			i++
		}
	}
	return -1
}
