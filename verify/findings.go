package verify

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify/guarded"
	"github.com/tailrace-cdc/replicator/verify/runs"
)

// Counts is what a full comparison found, before its candidates are settled.
type Counts struct {
	Items      int64 `json:"items"`      // read from the source
	Rows       int64 `json:"rows"`       // that should be there, one for each item in a row
	Cells      int64 `json:"cells"`      // compared
	Equal      int64 `json:"equal"`      // of Rows
	Candidates int64 `json:"candidates"` // rows and items that may differ; an item may be named several times
	Kept       int64 `json:"kept"`       // cells that may remain without an item
	Foreign    int64 `json:"foreign"`    // cells that no guard of their row can own
	Unproven   int64 `json:"unproven"`   // cells whose owner cannot be told
	Refused    int64 `json:"refused"`    // items that the mapping refuses

	Began    change.Millis `json:"began"`    // the earliest request of a page, by the service's clock
	Answered change.Millis `json:"answered"` // the latest reply
}

// Open is something that is not proven equal, and why. It may hold a key, so it belongs into files of mode 0600 only.
type Open struct {
	Kind      Kind          `json:"kind"`
	Why       string        `json:"why,omitempty"`
	Table     string        `json:"table,omitempty"`
	Key       string        `json:"key,omitempty"` // canonical
	Row       []byte        `json:"row,omitempty"`
	Family    string        `json:"family,omitempty"`
	Qualifier []byte        `json:"qualifier,omitempty"`
	Rule      string        `json:"rule,omitempty"`     // of an unowned cell: those that may have written it
	Pipeline  string        `json:"pipeline,omitempty"` // another one, to which the row belongs
	Until     change.Millis `json:"until,omitempty"`    // of a hot item: when to try again
}

// Findings are the candidates of a full comparison, on disk. They are made anew from the kept runs after a restart.
type Findings struct {
	Counts  Counts
	ByTable []Counts // items, rows, cells, refused and times of each table

	tables []Table
	target Target
	runs   *runs.Store // of the projection
	items  *runs.Store // candidates, by item
	rows   *runs.Store // rows with cells of unknown owners
	open   *openList
}

const (
	runsFolder = "projection"
	itemFolder = "candidates"
	rowFolder  = "rows"
	openFile   = "open.jsonl"
)

// Remove removes everything from the directory, when the result has been stored.
func (f *Findings) Remove() error {
	err := f.open.close()
	for _, s := range []*runs.Store{f.runs, f.items, f.rows} {
		err = errors.Join(err, s.Remove())
	}
	return errors.Join(err, os.Remove(f.open.path))
}

// Close closes the files and leaves them, so that a restart finds the finished parts.
func (f *Findings) Close() error { return f.open.close() }

// Candidate is an item that may differ, with the rows of the target in which it may.
type Candidate struct {
	Table int // index of its Table
	Key   string
	Rows  [][]byte
	Kinds []Kind // what was seen, without duplicates
}

// itemRow is the row of a run by which candidates are sorted: table and key.
func itemRow(dst []byte, of item) []byte {
	return append(binary.BigEndian.AppendUint16(dst, uint16(of.Table)), of.Key...)
}

// Candidates calls f with at most n items at a time. Each item comes once, in the order of the keys.
func (f *Findings) Candidates(n int, each func([]Candidate) error) error {
	m, err := f.items.Merge()
	if err != nil {
		return err
	}
	defer m.Close()
	var batch []Candidate
	var last []byte
	for {
		r, err := m.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if len(batch) == 0 || !bytes.Equal(last, r.Row) {
			if len(batch) == n {
				if err := each(batch); err != nil {
					return err
				}
				batch = nil
			}
			last = append(last[:0], r.Row...)
			batch = append(batch, Candidate{Table: int(binary.BigEndian.Uint16(r.Row)), Key: string(r.Row[2:])})
		}
		batch[len(batch)-1].add(Kind(r.Value), r.Name)
	}
	if len(batch) == 0 {
		return nil
	}
	return each(batch)
}

// add adds a row with a kind. Rows come in order.
func (c *Candidate) add(kind Kind, row []byte) {
	if n := len(c.Rows); len(row) > 0 && (n == 0 || !bytes.Equal(c.Rows[n-1], row)) {
		c.Rows = append(c.Rows, bytes.Clone(row))
	}
	for _, k := range c.Kinds {
		if k == kind {
			return
		}
	}
	c.Kinds = append(c.Kinds, kind)
}

// unownedRows calls f with at most n rows at a time that have cells of unknown owners.
func (f *Findings) unownedRows(n int, each func([]string) error) error {
	m, err := f.rows.Merge()
	if err != nil {
		return err
	}
	defer m.Close()
	var batch []string
	for {
		r, err := m.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if batch = append(batch, string(r.Row)); len(batch) == n {
			if err := each(batch); err != nil {
				return err
			}
			batch = nil
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return each(batch)
}

// collector stores what a full comparison finds.
type collector struct {
	counts  *Counts
	items   *runs.Writer
	rows    *runs.Writer
	open    *openList
	lastRow []byte
	key     []byte
}

func (c *collector) Candidate(kind Kind, of item, row []byte) error {
	c.counts.Candidates++
	c.key = itemRow(c.key[:0], of)
	c.items.Add(runs.Record{Row: c.key, Name: row, Value: []byte(kind)})
	if c.items.Full() {
		return c.items.Save("", nil, false)
	}
	return nil
}

func (c *collector) Kept([]byte, *guarded.Held) { c.counts.Kept++ }

func (c *collector) Foreign(row []byte, h *guarded.Held, pipeline string) error {
	c.counts.Foreign++
	return c.open.add(openCell(Foreign, row, h, pipeline))
}

func (c *collector) Unproven(kind Kind, row []byte, h *guarded.Held) error {
	if kind == Sealed {
		c.counts.Unproven++
		return c.open.add(openCell(kind, row, h, ""))
	}
	if bytes.Equal(row, c.lastRow) {
		return nil
	}
	c.lastRow = append(c.lastRow[:0], row...)
	c.rows.Add(runs.Record{Row: row})
	if c.rows.Full() {
		return c.rows.Save("", nil, false)
	}
	return nil
}

func openCell(kind Kind, row []byte, h *guarded.Held, pipeline string) Open {
	return Open{Kind: kind, Row: bytes.Clone(row), Family: h.Family, Qualifier: bytes.Clone(h.Qualifier),
		Pipeline: pipeline}
}

// openList lists what is not proven equal. It counts everything, and keeps the first shownOpen in memory and the first
// maxOpen in a file.
type openList struct {
	path  string
	file  *os.File
	to    *bufio.Writer
	first []Open
	count int64

	compared      int64 // of count: found by the comparison, before anything was settled; -1 until then
	comparedBytes int64 // of the file
}

const (
	shownOpen = 100
	maxOpen   = 1_000_000
)

func newOpenList(dir string) (*openList, error) {
	path := filepath.Join(dir, openFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create list of differences: %w", err)
	}
	return &openList{path: path, file: f, to: bufio.NewWriter(f), compared: -1}, nil
}

// rewind drops what an earlier settling of the candidates has added.
func (l *openList) rewind() error {
	if err := l.to.Flush(); err != nil {
		return fmt.Errorf("write list of differences: %w", err)
	}
	if l.compared < 0 {
		at, err := l.file.Seek(0, io.SeekCurrent)
		l.compared, l.comparedBytes = l.count, at
		return err
	}
	l.count, l.first = l.compared, l.first[:min(l.compared, int64(len(l.first)))]
	if err := l.file.Truncate(l.comparedBytes); err != nil {
		return fmt.Errorf("shorten list of differences: %w", err)
	}
	_, err := l.file.Seek(l.comparedBytes, io.SeekStart)
	return err
}

func (l *openList) add(o Open) error {
	if l.count++; l.count <= shownOpen {
		l.first = append(l.first, o)
	}
	if l.count > maxOpen {
		return nil
	}
	line, err := json.Marshal(o)
	if err == nil {
		_, err = l.to.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write list of differences: %w", err)
	}
	return nil
}

func (l *openList) close() error {
	if l == nil || l.file == nil {
		return nil
	}
	err := errors.Join(l.to.Flush(), l.file.Close())
	l.file = nil
	return err
}
