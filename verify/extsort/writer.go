package extsort

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Writer collects the records of one part, sorts them in memory and writes them as runs.
type Writer struct {
	store  *Store
	number int
	limit  int // of bytes in memory
	part   Part
	next   int // number of the next file
	memory
}

// memory holds records. The memory of a finished part serves the next one.
type memory struct {
	bytes []byte // of all records in memory: row, name and value, one after the other
	index []entry
}

// takeMemory returns memory without records.
func (s *Store) takeMemory() (m memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.free) - 1; last >= 0 {
		m, s.free = s.free[last], s.free[:last]
	}
	return m
}

func (s *Store) giveMemory(m memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, m)
}

// entry is where a record lies in Writer.bytes. prefix is the first eight bytes of its row, which
// decide most comparisons.
type entry struct {
	prefix           uint64
	at               int
	row, name, value int
}

const entrySize = 40

// Writer continues a part as it is stored. limit is the number of bytes of records that are
// collected before Full reports that a run should be written.
func (s *Store) Writer(i, limit int) (*Writer, error) {
	p, err := s.Part(i)
	if err != nil {
		return nil, err
	}
	w := &Writer{store: s, number: i, limit: limit, part: p, memory: s.takeMemory()}
	for _, f := range p.Files {
		var part, n int
		if _, err := fmt.Sscanf(f.Name, "part-%d-%d.run", &part, &n); err == nil {
			w.next = max(w.next, n+1)
		}
	}
	return w, nil
}

// Part returns the part as it is stored.
func (w *Writer) Part() Part { return w.part }

// Add adds a copy of a record.
func (w *Writer) Add(r Record) {
	e := entry{at: len(w.bytes), row: len(r.Row), name: len(r.Name), value: len(r.Value)}
	var first [8]byte
	copy(first[:], r.Row)
	e.prefix = binary.BigEndian.Uint64(first[:])
	w.bytes = append(append(append(w.bytes, r.Row...), r.Name...), r.Value...)
	w.index = append(w.index, e)
}

// Full reports whether the records in memory should be written with Save.
func (w *Writer) Full() bool { return len(w.bytes)+entrySize*len(w.index) >= w.limit }

func (w *Writer) record(e *entry) Record {
	row := e.at + e.row
	name := row + e.name
	return Record{w.bytes[e.at:row], w.bytes[row:name], w.bytes[name : name+e.value]}
}

// maxFiles is how many runs a part may have when it is done. More are merged, so that the merge of
// all parts has few enough files open.
const maxFiles = 8

// Save writes the records in memory as a run, and the manifest with where the part's source goes
// on. A done part takes no more records.
func (w *Writer) Save(after string, note any, done bool) error {
	encoded, err := json.Marshal(note)
	if err != nil {
		return fmt.Errorf("encode note: %w", err)
	}
	if len(w.index) > 0 {
		f, err := w.spill()
		if err != nil {
			return err
		}
		w.part.Files = append(w.part.Files, f)
	}
	w.part.After, w.part.Note, w.part.Done = after, encoded, done
	if done {
		w.store.giveMemory(w.memory)
		w.memory = memory{}
	}
	var old []string
	if done || len(w.part.Files) >= maxFiles*maxFiles {
		if old, err = w.unite(); err != nil {
			return err
		}
	}
	if err := w.store.save(w.number, w.part); err != nil {
		return err
	}
	return removeAll(old)
}

func (w *Writer) create() (*fileWriter, string, error) {
	name := fmt.Sprintf("part-%05d-%05d.run", w.number, w.next)
	w.next++
	f, err := createFile(filepath.Join(w.store.dir, name))
	return f, name, NoRoom(w.store.dir, err)
}

// discard removes a run that could not be written: on a full volume, others need its room. It
// returns the error of the write.
func (w *Writer) discard(f *fileWriter, err error) error {
	_ = f.f.Close() // it may be closed already
	_ = os.Remove(f.f.Name())
	return NoRoom(w.store.dir, err)
}

// spill writes the records in memory in order.
func (w *Writer) spill() (File, error) {
	slices.SortFunc(w.index, func(a, b entry) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		x, y := w.bytes[a.at:a.at+a.row], w.bytes[b.at:b.at+b.row]
		if c := bytes.Compare(x, y); c != 0 {
			return c
		}
		return bytes.Compare(w.bytes[a.at+a.row:][:a.name], w.bytes[b.at+b.row:][:b.name])
	})
	f, name, err := w.create()
	if err != nil {
		return File{}, err
	}
	for i := range w.index {
		r := w.record(&w.index[i])
		if err := f.add(&r); err != nil {
			return File{}, w.discard(f, err)
		}
	}
	w.bytes, w.index = w.bytes[:0], w.index[:0]
	if err := f.close(); err != nil {
		return File{}, w.discard(f, err)
	}
	return File{name, f.bytes, f.records}, nil
}

// unite merges the part's runs into one where there are too many. It returns the paths of those
// that are no longer needed once the manifest is stored.
func (w *Writer) unite() (old []string, err error) {
	if len(w.part.Files) <= maxFiles {
		return nil, nil
	}
	m := &Merge{}
	defer m.Close()
	for _, f := range w.part.Files {
		if err := m.open(w.store.dir, w.number, f, len(w.part.Files)); err != nil {
			return nil, err
		}
		old = append(old, filepath.Join(w.store.dir, f.Name))
	}
	heap.Init(&m.heap)
	to, name, err := w.create()
	if err != nil {
		return nil, err
	}
	for {
		r, err := m.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = to.add(r)
		}
		if err != nil {
			return nil, w.discard(to, err)
		}
	}
	if err := to.close(); err != nil {
		return nil, w.discard(to, err)
	}
	w.part.Files = []File{{name, to.bytes, to.records}}
	return old, nil
}
