package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/extsort"
)

const (
	keysFolder = "keys"
	memory     = 8 << 20 // bytes of keys before they are written
	maxSeen    = 200_000 // keys with rows that are known to be stored already
)

// The parts of the store.
const (
	partOpen    = iota // items that were not equal
	partChanged        // items that have changed since; its note is a progress
	parts
)

// progress is how far the logs were read into the keys.
type progress struct {
	Marks  []checkpoint.Mark `json:"marks"`            // by table
	Broken string            `json:"broken,omitempty"` // what makes the kept comparison useless; "" for nothing
}

// keys are items with the rows that they are or were in. They are sorted on disk, so memory is
// bounded.
type keys struct {
	store *extsort.Store

	mu    sync.Mutex // covers what follows, but for progress, which only the reader of the logs uses
	parts [parts]*extsort.Writer
	seen  map[[16]byte]struct{} // cleared when it is full: a hot item need not be stored each time it changes
	row   []byte
	progress
}

// openKeys opens the keys in a folder. marks are the marks of new keys.
func openKeys(folder string, marks []checkpoint.Mark) (*keys, error) {
	store, err := extsort.Open(filepath.Join(folder, keysFolder), filepath.Base(folder))
	if err != nil {
		return nil, err
	}
	k := &keys{store: store, seen: map[[16]byte]struct{}{}}
	for i := range k.parts {
		if k.parts[i], err = store.Writer(i, memory); err != nil {
			return nil, err
		}
	}
	if note := k.parts[partChanged].Part().Note; note != nil {
		if err := json.Unmarshal(note, &k.progress); err != nil {
			return nil, fmt.Errorf("read kept keys: %w", err)
		}
	}
	if k.Marks == nil {
		k.Marks = append(k.Marks, marks...)
	}
	return k, nil
}

// add adds an item with a row; without one where row is nil.
func (k *keys) add(part, table int, key, row []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.row = append(binary.BigEndian.AppendUint16(k.row[:0], uint16(table)), key...)
	h := sha256.New()
	_, _ = h.Write(append(binary.BigEndian.AppendUint32(k.row, uint32(len(k.row))), row...)) // never fails
	sum := [16]byte(h.Sum(nil)[:16])
	if _, ok := k.seen[sum]; ok && part == partChanged {
		return nil
	}
	if len(k.seen) == maxSeen {
		clear(k.seen)
	}
	k.seen[sum] = struct{}{}
	w := k.parts[part]
	w.Add(extsort.Record{Row: k.row, Name: row})
	if !w.Full() {
		return nil
	}
	// The note stays as it was: marks that are behind the keys are harmless, because keys may be
	// added again.
	if err := w.Save("", w.Part().Note, false); err != nil {
		return fmt.Errorf("keep keys: %w", err)
	}
	return nil
}

// save stores what was added, and the progress.
func (k *keys) save() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, w := range k.parts {
		var note any
		if i == partChanged {
			note = &k.progress
		}
		if err := w.Save("", note, false); err != nil {
			return fmt.Errorf("keep keys: %w", err)
		}
	}
	return nil
}

// each calls f with at most n items at a time. Each item comes once.
func (k *keys) each(n int, f func([]verify.Candidate) error) error {
	m, err := k.store.Merge()
	if err != nil {
		return fmt.Errorf("read kept keys: %w", err)
	}
	defer m.Close()
	var batch []verify.Candidate
	var last []byte
	for {
		r, err := m.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read kept keys: %w", err)
		}
		if len(batch) == 0 || !bytes.Equal(last, r.Row) {
			if len(batch) == n {
				if err := f(batch); err != nil {
					return err
				}
				batch = nil
			}
			last = append(last[:0], r.Row...)
			batch = append(batch, verify.Candidate{Table: int(binary.BigEndian.Uint16(r.Row)), Key: string(r.Row[2:])})
		}
		c := &batch[len(batch)-1]
		if known := len(c.Rows); len(r.Name) > 0 && (known == 0 || !bytes.Equal(c.Rows[known-1], r.Name)) {
			c.Rows = append(c.Rows, bytes.Clone(r.Name))
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return f(batch)
}
