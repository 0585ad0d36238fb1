package guarded

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// Projector turns items of one table into what the target should hold of them.
type Projector struct {
	families *Families
	program  *transform.Program
	keys     *change.KeyReader
	dec      change.Decoder
	write    transform.Write
	change   change.Change
	key      []byte // canonical, of the last item
	order    []*transform.Cell
	buf      []byte
	content  []byte
}

// NewProjector returns a projector for the items of a table.
func NewProjector(f *Families, t *Table) *Projector {
	return &Projector{families: f, program: t.Program, keys: change.NewKeyReader(t.Program.Table().Schema)}
}

// Key returns the canonical key of the last item, valid until the next one.
func (p *Projector) Key() []byte { return p.key }

// Rows returns the rows that an item should have, valid until the next call. The error is a
// *transform.Refusal when the mapping does not take the item.
func (p *Projector) Rows(item []byte) ([]transform.Row, error) {
	var err error
	if p.key, err = p.keys.Of(p.key[:0], item); err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	p.dec.Reset()
	// An insertion, instead of Project, because it uses the memory of the last one again.
	p.change = change.Change{Op: change.Insert, Version: 1, Keys: p.key, New: item}
	if err := p.program.Change(&p.dec, &p.change, &p.write); err != nil {
		return nil, err
	}
	return p.write.Rows, nil
}

// Rule returns the rule that takes the item of the last call of Rows, as "rule item"; "" where none
// does.
func (p *Projector) Rule(item []byte) string {
	p.dec.Reset()
	if name := p.program.RuleOf(&p.dec, p.key, item); name != "" {
		return "rule " + name
	}
	return ""
}

// IsRefusal reports whether the mapping does not take the item.
func IsRefusal(err error) bool {
	var refusal *transform.Refusal
	return errors.As(err, &refusal)
}

// Wanted is what a row should hold of one item: either cells, or a hash of them.
type Wanted struct {
	Item  Item
	Cells []WantedCell
	hash  []byte
	n     int // cells that were hashed
}

// Item names an item: the index of its table, and its canonical key.
type Item struct {
	Table int
	Key   string
}

// WantedCell is one cell that an item should have.
type WantedCell struct {
	family    int
	qualifier []byte
	time      int64  // ms, or unmapped
	value     []byte // whole, or 16 bytes of its SHA-256
	hashed    bool
	rawJSON   bool // a document, compared by its canonical form
}

// Clone returns a copy that shares no memory.
func (w WantedCell) Clone() WantedCell {
	w.qualifier, w.value = bytes.Clone(w.qualifier), bytes.Clone(w.value)
	return w
}

const (
	rowOfHash  = 'h'
	rowOfCells = 'c'
)

// rowHash is how many bytes of a row's SHA-256 are stored: a row that differs passes for equal once
// in 2^96 times.
const rowHash = 12

// wholeValue is the size up to which a value is stored as it is instead of its hash.
const wholeValue = 16

// Encode returns a row of an item for the runs, valid until the next call: by hash where every
// difference shows in the newest cells of its own row, else its cells.
func (p *Projector) Encode(row *transform.Row) []byte {
	p.buf = p.buf[:0]
	if p.isHashed(row) {
		p.buf = append(p.buf, rowOfHash)
		p.buf = binary.AppendUvarint(p.buf, uint64(len(row.Cells)))
		sum := p.hash(row)
		p.buf = append(p.buf, sum[:rowHash]...)
		return p.buf
	}
	p.buf = binary.AppendUvarint(append(p.buf, rowOfCells), uint64(len(row.Cells)))
	for i := range row.Cells {
		c := p.Cell(&row.Cells[i])
		p.buf = append(p.buf, flag(c.hashed)|flag(c.rawJSON)<<1|flag(c.time != unmapped)<<2)
		p.buf = binary.AppendUvarint(p.buf, uint64(c.family))
		if c.time != unmapped {
			p.buf = binary.AppendVarint(p.buf, c.time)
		}
		for _, part := range [][]byte{c.qualifier, c.value} {
			p.buf = append(binary.AppendUvarint(p.buf, uint64(len(part))), part...)
		}
	}
	return p.buf
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// isHashed reports whether a row is compared by one hash: it belongs to one item, which replaces
// all of it, and no cell may age, be merged, have a time of its own or be equal in other bytes.
func (p *Projector) isHashed(row *transform.Row) bool {
	if row.Class != transform.ClassR || len(row.KeepHistory) > 0 {
		return false
	}
	return !slices.ContainsFunc(row.Cells, func(c transform.Cell) bool {
		return c.Mapped || c.RawJSON || c.Aggregate || !p.families.hashed[p.families.Index(c.Family)]
	})
}

// hash returns the hash of a row's cells in the order of the target.
func (p *Projector) hash(row *transform.Row) [sha256.Size]byte {
	p.order = p.order[:0]
	for i := range row.Cells {
		p.order = append(p.order, &row.Cells[i])
	}
	slices.SortFunc(p.order, func(a, b *transform.Cell) int {
		family := 0
		if a.Family != b.Family {
			family = cmp.Compare(p.families.Index(a.Family), p.families.Index(b.Family))
		}
		return cmp.Or(family, bytes.Compare(a.Qualifier, b.Qualifier))
	})
	p.content = p.content[:0]
	for _, c := range p.order {
		p.content = appendContent(p.content, p.families.Index(c.Family), c.Qualifier, c.Value)
	}
	return sha256.Sum256(p.content)
}

// appendContent appends a cell to the content of a row that is hashed.
func appendContent(dst []byte, family int, qualifier, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(family))
	dst = append(binary.AppendUvarint(dst, uint64(len(qualifier))), qualifier...)
	return append(binary.AppendUvarint(dst, uint64(len(value))), value...)
}

// Cell returns a cell as it is compared. It shares the qualifier's memory, and the value's where it
// is whole.
func (p *Projector) Cell(c *transform.Cell) WantedCell {
	w := WantedCell{family: p.families.Index(c.Family), qualifier: c.Qualifier, time: unmapped, value: c.Value,
		rawJSON: c.RawJSON}
	if c.Mapped {
		w.time = c.Time
	}
	if c.RawJSON {
		var d change.Decoder
		w.value = canonicalDocument(&d, c.Value)
	}
	if len(w.value) > wholeValue && p.families.List[w.family].Aggregate == "" {
		sum := sha256.Sum256(w.value)
		w.value, w.hashed = sum[:16], true
	}
	return w
}

// Decode reads what Encode wrote into w. It shares b's memory.
func (w *Wanted) Decode(b []byte) error {
	w.Cells, w.hash, w.n = w.Cells[:0], nil, 0
	d := decoder{b: b}
	kind, n := d.byte(), d.uvarint()
	if kind == rowOfHash {
		w.n, w.hash = int(n), d.b
		d.bad = d.bad || len(w.hash) != rowHash
		n = 0
	}
	for range n {
		flags := d.byte()
		c := WantedCell{hashed: flags&1 != 0, rawJSON: flags&2 != 0, time: unmapped}
		if c.family = int(d.uvarint()); flags&4 != 0 {
			c.time = d.varint()
		}
		c.qualifier, c.value = d.bytes(), d.bytes()
		if d.bad {
			break
		}
		w.Cells = append(w.Cells, c)
	}
	if d.bad {
		return errors.New("read projection: a record is malformed")
	}
	return nil
}

// decoder reads values one after the other; after an error bad is set.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}
