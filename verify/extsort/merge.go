package extsort

import (
	"container/heap"
	"errors"
	"io"
	"path/filepath"
)

// Merge reads the records of several runs in one order.
type Merge struct {
	heap    readers
	started bool
}

// readBuffers is the memory of all read buffers of a merge.
const readBuffers = 16 << 20

// Merge opens all runs of all parts. Close must be called.
func (s *Store) Merge() (*Merge, error) {
	type named struct {
		part int
		file File
	}
	var all []named
	for _, i := range s.parts() {
		p, err := s.Part(i)
		if err != nil {
			return nil, err
		}
		for _, f := range p.Files {
			all = append(all, named{i, f})
		}
	}
	m := &Merge{}
	for _, x := range all {
		if err := m.open(s.dir, x.part, x.file, len(all)); err != nil {
			m.Close()
			return nil, err
		}
	}
	heap.Init(&m.heap)
	return m, nil
}

// open adds a run, one of n.
func (m *Merge) open(dir string, part int, f File, n int) error {
	buffer := min(256<<10, max(4<<10, readBuffers/max(n, 1)))
	r, err := openFile(filepath.Join(dir, f.Name), part, f, buffer)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	m.heap = append(m.heap, r)
	return nil
}

// Next returns the next record, which is valid until the next call, or io.EOF. A *DamagedError
// names the part to make again.
func (m *Merge) Next() (*Record, error) {
	if m.started && len(m.heap) > 0 {
		switch err := m.heap[0].next(); {
		case err == nil:
			heap.Fix(&m.heap, 0)
		case errors.Is(err, io.EOF):
			_ = m.heap[0].f.Close() // only read
			heap.Pop(&m.heap)
		default:
			return nil, err
		}
	}
	m.started = true
	if len(m.heap) == 0 {
		return nil, io.EOF
	}
	return &m.heap[0].head, nil
}

// Close closes the files.
func (m *Merge) Close() {
	for _, r := range m.heap {
		_ = r.f.Close() // only read
	}
	m.heap = nil
}

type readers []*fileReader

func (r readers) Len() int           { return len(r) }
func (r readers) Less(i, j int) bool { return r[i].head.compare(&r[j].head) < 0 }
func (r readers) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *readers) Push(x any)        { *r = append(*r, x.(*fileReader)) }
func (r *readers) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
