package change

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// recordsFormat is the first byte of packed records. Rule 11: a newer one is refused.
const recordsFormat = 1

const (
	flagTTL = 1 << iota
	flagNew
	flagOld
)

// AppendRecords appends the wire form of records: a format byte and the count, then per record an
// index (op, flags, version, creation time, key hash, sequence number, offsets of keys and images
// in the raw record) and the raw record itself. So the whole record is stored, and a reader need
// not scan it again.
func AppendRecords(dst []byte, recs []Record) []byte {
	dst = append(dst, recordsFormat)
	dst = binary.AppendUvarint(dst, uint64(len(recs)))
	version, created := Version(0), Millis(0)
	for i := range recs {
		r := &recs[i]
		dst = append(dst, byte(r.Op), r.flags())
		dst = binary.AppendVarint(dst, int64(r.Version-version))
		dst = binary.AppendVarint(dst, int64(r.Created-created))
		version, created = r.Version, r.Created
		dst = binary.LittleEndian.AppendUint64(dst, r.KeyHash)
		dst = binary.AppendUvarint(dst, uint64(len(r.SequenceNumber)))
		dst = append(dst, r.SequenceNumber...)
		dst = appendPart(dst, r.Raw, r.Keys)
		if r.New != nil {
			dst = appendPart(dst, r.Raw, r.New)
		}
		if r.Old != nil {
			dst = appendPart(dst, r.Raw, r.Old)
		}
		dst = binary.AppendUvarint(dst, uint64(len(r.Raw)))
		dst = append(dst, r.Raw...)
	}
	return dst
}

func (r *Record) flags() (f byte) {
	if r.TTL {
		f |= flagTTL
	}
	if r.New != nil {
		f |= flagNew
	}
	if r.Old != nil {
		f |= flagOld
	}
	return f
}

// appendPart appends offset and length of part in raw; both are slices of one page's body. It
// panics if part is not inside raw: that is a bug, and such a record could not be read back.
func appendPart(dst, raw, part []byte) []byte {
	offset := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(part))) - uintptr(unsafe.Pointer(unsafe.SliceData(raw))))
	switch {
	case len(part) == 0:
		offset = 0
	case offset > uint64(len(raw)) || uint64(len(part)) > uint64(len(raw))-offset:
		panic("change: append records: keys or image lie outside of their record")
	}
	dst = binary.AppendUvarint(dst, offset)
	return binary.AppendUvarint(dst, uint64(len(part)))
}

// DecodeRecords calls f with each change in b, in order. The change is valid during the call; its
// slices alias b. An error of f ends the decoding and is returned as it is.
func DecodeRecords(b []byte, feed Feed, f func(*Change) error) error {
	d := reader{b: b}
	switch v := d.byte(); {
	case d.bad:
		return fmt.Errorf("decode records: %w", errTruncated)
	case v > recordsFormat: // Rule 11
		return fmt.Errorf("decode records: format %d, this build reads up to %d: upgrade the replicator", v, recordsFormat)
	case v < recordsFormat:
		return fmt.Errorf("decode records: %d is not a format", v)
	}
	n := d.uvarint()
	if d.bad {
		return fmt.Errorf("decode records: %w", errTruncated)
	}
	c := Change{Feed: feed}
	for range n {
		d.change(&c)
		if d.bad {
			return fmt.Errorf("decode records: %w", errTruncated)
		}
		if err := f(&c); err != nil {
			return err
		}
	}
	if len(d.b) != d.i {
		return fmt.Errorf("decode records: %d bytes left over", len(d.b)-d.i)
	}
	return nil
}

var errTruncated = errors.New("truncated")

// reader reads values from b in order. After an error bad is set, and all further values are zero.
type reader struct {
	b   []byte
	i   int
	bad bool
}

type span struct{ at, n int }

func (d *reader) change(c *Change) {
	c.Op = Op(d.byte())
	flags := d.byte()
	c.TTL = flags&flagTTL != 0
	c.Version += Version(d.varint())
	c.Created += Millis(d.varint())
	if h := d.readBytes(8); h != nil {
		c.KeyHash = binary.LittleEndian.Uint64(h)
	}
	c.SequenceNumber = SequenceNumber(d.readBytes(int(d.uvarint())))
	keys := d.span()
	var newer, older span
	if flags&flagNew != 0 {
		newer = d.span()
	}
	if flags&flagOld != 0 {
		older = d.span()
	}
	c.Raw = d.readBytes(int(d.uvarint()))
	c.Keys, c.New, c.Old = d.part(c.Raw, keys), nil, nil
	if flags&flagNew != 0 {
		c.New = d.part(c.Raw, newer)
	}
	if flags&flagOld != 0 {
		c.Old = d.part(c.Raw, older)
	}
}

func (d *reader) byte() byte {
	if p := d.readBytes(1); p != nil {
		return p[0]
	}
	return 0
}

func (d *reader) readBytes(n int) []byte {
	if d.bad || n < 0 || n > len(d.b)-d.i {
		d.bad = true
		return nil
	}
	p := d.b[d.i : d.i+n : d.i+n]
	d.i += n
	return p
}

func (d *reader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b[d.i:])
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.i += n
	return v
}

func (d *reader) varint() int64 {
	v, n := binary.Varint(d.b[d.i:])
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.i += n
	return v
}

func (d *reader) span() span { return span{int(d.uvarint()), int(d.uvarint())} }

func (d *reader) part(raw []byte, s span) []byte {
	if s.at < 0 || s.n < 0 || s.at > len(raw) || s.n > len(raw)-s.at {
		d.bad = true
		return nil
	}
	return raw[s.at : s.at+s.n : s.at+s.n]
}
