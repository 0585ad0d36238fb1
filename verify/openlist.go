package verify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify/extsort"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// Open is something that is not proven equal, and why. It may hold a key, so it belongs into files
// of mode 0600 only.
type Open struct {
	Kind      guarded.Kind  `json:"kind"`
	Why       string        `json:"why,omitempty"`
	Table     string        `json:"table,omitempty"`
	Key       string        `json:"key,omitempty"` // canonical
	Row       []byte        `json:"row,omitempty"`
	Family    string        `json:"family,omitempty"`
	Qualifier []byte        `json:"qualifier,omitempty"`
	Rule      string        `json:"rule,omitempty"`     // of an unowned cell: what may have written it, for people
	Rules     []string      `json:"rules,omitempty"`    // the rules of that, as their mapping names them
	Pipeline  string        `json:"pipeline,omitempty"` // another one, to which the row belongs
	Until     change.Millis `json:"until,omitempty"`    // of a hot item: when to try again
}

// openOfCell returns the entry of a cell without a known owner.
func openOfCell(kind guarded.Kind, row []byte, h *guarded.Held, pipeline string) Open {
	return Open{Kind: kind, Row: bytes.Clone(row), Family: h.Family, Qualifier: bytes.Clone(h.Qualifier),
		Pipeline: pipeline}
}

const (
	shown = 100
	most  = 1_000_000 // in the file
)

// openList is a list of what is not proven equal.
type openList struct {
	path  string
	file  *os.File
	to    *bufio.Writer
	first []Open
	count int64
}

// createOpenList makes an empty list in a file.
func createOpenList(path string) (*openList, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, noRoom(path, fmt.Errorf("create list of differences: %w", err))
	}
	return &openList{path: path, file: f, to: bufio.NewWriter(f)}, nil
}

func noRoom(path string, err error) error { return extsort.NoRoom(filepath.Dir(path), err) }

// Path returns the path of the file.
func (l *openList) Path() string { return l.path }

// First returns the first 100 entries.
func (l *openList) First() []Open { return l.first }

// Count returns how many entries were added, those included that are not in the file.
func (l *openList) Count() int64 { return l.count }

// Add adds an entry.
func (l *openList) Add(o Open) error {
	if l.count++; l.count <= shown {
		l.first = append(l.first, o)
	}
	if l.count > most {
		return nil
	}
	line, err := json.Marshal(o)
	if err == nil {
		_, err = l.to.Write(append(line, '\n'))
	}
	if err != nil {
		return noRoom(l.path, fmt.Errorf("write list of differences: %w", err))
	}
	return nil
}

// Each calls f with each entry of the file, in the order in which they were added.
func (l *openList) Each(f func(*Open) error) error {
	if err := l.Flush(); err != nil {
		return err
	}
	file, err := os.Open(l.path)
	if err != nil {
		return fmt.Errorf("open list of differences: %w", err)
	}
	defer file.Close()
	for dec := json.NewDecoder(bufio.NewReader(file)); ; {
		var o Open
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read list of differences: %w", err)
		}
		if err := f(&o); err != nil {
			return err
		}
	}
}

// Flush writes what is buffered, so that the file can be read.
func (l *openList) Flush() error {
	if err := l.to.Flush(); err != nil {
		return noRoom(l.path, fmt.Errorf("write list of differences: %w", err))
	}
	return nil
}

// Close writes what is buffered and closes the file; a nil or closed list may be closed again.
func (l *openList) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	err := errors.Join(l.to.Flush(), l.file.Close())
	l.file = nil
	if err != nil {
		return noRoom(l.path, fmt.Errorf("write list of differences: %w", err))
	}
	return nil
}

// Remove closes the list and removes the file.
func (l *openList) Remove() error {
	if l == nil {
		return nil
	}
	_ = l.Close() // what could not be written is not wanted
	return os.Remove(l.path)
}
