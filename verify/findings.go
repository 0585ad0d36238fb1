package verify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/verify/extsort"
	"github.com/tailrace-cdc/replicator/verify/guarded"
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

// Findings are the candidates of a full comparison, on disk. They are made anew from the kept runs
// after a restart.
type Findings struct {
	Counts  Counts
	ByTable []Counts // items, rows, cells, refused and times of each table

	seen   Counts // at the first look
	tables []Table
	target Target
	dir    string
	runs   *extsort.Store // of the projection
	items  *extsort.Store // candidates, by item
	rows   *extsort.Store // cells whose owner cannot be told, by row
	cells  *openList      // foreign and sealed ones
	open   *openList      // what a Resyncer leaves open
	read   change.Millis  // when the last row had been read
}

const (
	runsFolder = "projection"
	itemFolder = "candidates"
	rowFolder  = "rows"
	cellFile   = "cells.jsonl"
	openFile   = "open.jsonl"
)

// Remove removes everything from the directory, when the result has been stored.
func (f *Findings) Remove() error {
	err := errors.Join(f.cells.Remove(), f.open.Remove())
	for _, s := range []*extsort.Store{f.runs, f.items, f.rows} {
		err = errors.Join(err, s.Remove())
	}
	return err
}

// newOpen makes the list of what a Resyncer leaves open, in place of an earlier one.
func (f *Findings) newOpen() (*openList, error) {
	err := f.open.Close()
	if err == nil {
		f.open, err = createOpenList(filepath.Join(f.dir, openFile))
	}
	return f.open, err
}

// Close closes the files and leaves them, so that a restart finds the finished parts.
func (f *Findings) Close() error { return errors.Join(f.cells.Close(), f.open.Close()) }

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

// Candidates calls f with at most n items at a time. Each item comes once, in the order of the
// keys.
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

// columnName names a column in the records of findings: families have no NUL in their names.
func columnName(family string, qualifier []byte) []byte {
	return append(append([]byte(family), 0), qualifier...)
}

// unownedCells calls f with batches of at most n cells whose owner cannot be determined.
func (f *Findings) unownedCells(n int, each func([]Open) error) error {
	m, err := f.rows.Merge()
	if err != nil {
		return err
	}
	defer m.Close()
	var batch []Open
	for {
		r, err := m.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		family, qualifier, _ := bytes.Cut(r.Name, []byte{0})
		o := Open{Kind: Unowned, Row: bytes.Clone(r.Row), Family: string(family), Qualifier: bytes.Clone(qualifier)}
		if n := len(batch); n > 0 && placeOf(&batch[n-1]) == placeOf(&o) {
			continue // both looks have found it
		}
		if len(batch) == n {
			if err := each(batch); err != nil {
				return err
			}
			batch = nil
		}
		batch = append(batch, o)
	}
	if len(batch) == 0 {
		return nil
	}
	return each(batch)
}

// collector stores what a full comparison finds.
type collector struct {
	counts *Counts
	items  *extsort.Writer
	rows   *extsort.Writer
	cells  *openList
	key    []byte
}

func (c *collector) Candidate(kind Kind, of item, row []byte) error {
	c.counts.Candidates++
	c.key = itemRow(c.key[:0], of)
	c.items.Add(extsort.Record{Row: c.key, Name: row, Value: []byte(kind)})
	if c.items.Full() {
		return c.items.Save("", nil, false)
	}
	return nil
}

func (c *collector) Kept([]byte, *guarded.Held) { c.counts.Kept++ }

func (c *collector) Foreign(row []byte, h *guarded.Held, pipeline string) error {
	c.counts.Foreign++
	return c.cells.Add(openOfCell(Foreign, row, h, pipeline))
}

func (c *collector) Unproven(kind Kind, row []byte, h *guarded.Held) error {
	if kind == Sealed {
		c.counts.Unproven++
		return c.cells.Add(openOfCell(kind, row, h, ""))
	}
	return c.addUnowned(row, h.Family, h.Qualifier)
}

// addUnowned adds a cell whose owner cannot be determined.
func (c *collector) addUnowned(row []byte, family string, qualifier []byte) error {
	c.rows.Add(extsort.Record{Row: row, Name: columnName(family, qualifier)})
	if c.rows.Full() {
		return c.rows.Save("", nil, false)
	}
	return nil
}
