package verify

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// unmapped is the time of a cell whose timestamp is the version of its write, which the source does not contain.
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

// cellOverhead is the memory of a cell besides its bytes.
const cellOverhead = 112

func (c *cell) size() int { return len(c.row) + len(c.qualifier) + len(c.value) + cellOverhead }

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

// sorter sorts more cells than fit in memory: it sorts and writes runs, and merges them.
type sorter struct {
	memory int
	dir    string
	cells  []cell
	bytes  int
	runs   []*os.File
}

// add adds a copy of c.
func (s *sorter) add(c cell) error {
	c.row, c.qualifier, c.value = bytes.Clone(c.row), bytes.Clone(c.qualifier), bytes.Clone(c.value)
	s.cells = append(s.cells, c)
	if s.bytes += c.size(); s.bytes < s.memory {
		return nil
	}
	return s.spill()
}

func (s *sorter) sort() {
	slices.SortFunc(s.cells, func(a, b cell) int { return order(&a, &b) })
}

// spill sorts the cells in memory and writes them to a file as a run.
func (s *sorter) spill() error {
	s.sort()
	f, err := os.CreateTemp(s.dir, "tailrace-verify-")
	if err != nil {
		return fmt.Errorf("create run file: %w", err)
	}
	s.runs = append(s.runs, f)
	// The name is removed at once, so that no file remains however this process ends.
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("unlink run file: %w", err)
	}
	w := bufio.NewWriterSize(f, 256<<10)
	var buf []byte
	for i := range s.cells {
		buf = s.cells[i].append(buf[:0])
		if _, err := w.Write(buf); err != nil {
			return fmt.Errorf("write run: %w", err)
		}
	}
	s.cells, s.bytes = s.cells[:0], 0
	clear(s.cells[:cap(s.cells)])
	return errors.Join(w.Flush(), rewindFile(f))
}

func rewindFile(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}

func (s *sorter) close() {
	for _, f := range s.runs {
		_ = f.Close() // unlinked already: nothing to lose
	}
}

// sorted returns the cells in order. No cell may be added afterwards.
func (s *sorter) sorted() (*merge, error) {
	s.sort()
	m := &merge{memory: s.cells}
	for _, f := range s.runs {
		r := &run{from: bufio.NewReaderSize(f, 256<<10)}
		switch err := r.next(); {
		case err == nil:
			m.runs = append(m.runs, r)
		case !errors.Is(err, io.EOF):
			return nil, err
		}
	}
	heap.Init(&m.runs)
	return m, nil
}

// merge returns the cells of all runs and of memory in order.
type merge struct {
	memory []cell
	runs   runHeap
}

// next returns the next cell; io.EOF after the last.
func (m *merge) next() (cell, error) {
	if len(m.runs) == 0 {
		if len(m.memory) == 0 {
			return cell{}, io.EOF
		}
		c := m.memory[0]
		m.memory = m.memory[1:]
		return c, nil
	}
	if len(m.memory) > 0 && order(&m.memory[0], &m.runs[0].head) <= 0 {
		c := m.memory[0]
		m.memory = m.memory[1:]
		return c, nil
	}
	c := m.runs[0].head
	switch err := m.runs[0].next(); {
	case err == nil:
		heap.Fix(&m.runs, 0)
	case errors.Is(err, io.EOF):
		heap.Pop(&m.runs)
	default:
		return cell{}, err
	}
	return c, nil
}

// run is a sorted file; head is its next cell.
type run struct {
	from *bufio.Reader
	head cell
}

func (r *run) next() (err error) {
	r.head, err = readCell(r.from)
	return err
}

type runHeap []*run

func (r runHeap) Len() int           { return len(r) }
func (r runHeap) Less(i, j int) bool { return order(&r[i].head, &r[j].head) < 0 }
func (r runHeap) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *runHeap) Push(x any)        { *r = append(*r, x.(*run)) }
func (r *runHeap) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// append appends the cell as readCell reads it.
func (c *cell) append(dst []byte) []byte {
	for _, part := range [][]byte{c.row, c.qualifier, c.value} {
		dst = append(binary.AppendUvarint(dst, uint64(len(part))), part...)
	}
	dst = binary.AppendUvarint(dst, uint64(c.family))
	dst = binary.AppendVarint(dst, c.time)
	document := byte(0)
	if c.rawJSON {
		document = 1
	}
	dst = append(dst, document)
	return binary.LittleEndian.AppendUint64(dst, c.keyHash)
}

// readCell reads a cell that append wrote. It returns io.EOF only between cells.
func readCell(r *bufio.Reader) (cell, error) {
	var c cell
	for i, part := range []*[]byte{&c.row, &c.qualifier, &c.value} {
		n, err := binary.ReadUvarint(r)
		if err != nil {
			if i > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return c, err
		}
		*part = make([]byte, n)
		if _, err := io.ReadFull(r, *part); err != nil {
			return c, fmt.Errorf("read run: %w", noEOF(err))
		}
	}
	family, err := binary.ReadUvarint(r)
	if err != nil {
		return c, fmt.Errorf("read run: %w", noEOF(err))
	}
	c.family = int(family)
	if c.time, err = binary.ReadVarint(r); err != nil {
		return c, fmt.Errorf("read run: %w", noEOF(err))
	}
	var rest [9]byte
	if _, err := io.ReadFull(r, rest[:]); err != nil {
		return c, fmt.Errorf("read run: %w", noEOF(err))
	}
	c.rawJSON, c.keyHash = rest[0] == 1, binary.LittleEndian.Uint64(rest[1:])
	return c, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
