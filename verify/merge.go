package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tailrace-cdc/replicator/verify/extsort"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// merging reads the sorted projection and the target side by side.
type merging struct {
	full   *full
	from   *extsort.Merge
	into   *collector
	counts *Counts
	// byTable counts the rows and cells of each table.
	byTable []Counts
	rows    *guarded.Comparison

	next  *extsort.Record // the first record of the next row; nil at the end
	key   []byte          // of the row whose records are in items
	here  bool            // there is such a row
	bytes []byte          // of its records
	spans []recordSpan
	items []guarded.Wanted
	done  int64 // rows compared
}

// recordSpan is where a record of the current row lies in merging.bytes.
type recordSpan struct{ from, value, to int }

func (m *merging) run(ctx context.Context) error {
	if err := m.start(); err != nil {
		return fmt.Errorf("read projection: %w", err)
	}
	var failed error // the reading of the target may wrap it in another way
	err := m.full.target.Scan(ctx, func(row *Row) error {
		failed = m.compare(row)
		return failed
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("read target: %w", err)
	}
	for m.here {
		if err := m.missing(); err != nil {
			return err
		}
	}
	return nil
}

// start reads the first row of the projection, after the items that the mapping refuses.
func (m *merging) start() error {
	if err := m.readRecord(); err != nil {
		return err
	}
	for m.next != nil && len(m.next.Row) == 0 {
		if err := m.into.Candidate(Refusal, itemOf(m.next.Name), nil); err != nil {
			return err
		}
		if err := m.readRecord(); err != nil {
			return err
		}
	}
	return m.nextRow()
}

// itemOf reads the name of a record: table and key.
func itemOf(name []byte) item {
	return item{Table: int(binary.BigEndian.Uint16(name)), Key: string(name[2:])}
}

func (m *merging) readRecord() (err error) {
	m.next, err = m.from.Next()
	if errors.Is(err, io.EOF) {
		m.next, err = nil, nil
	}
	return err
}

// nextRow reads the records of the next row.
func (m *merging) nextRow() error {
	m.here, m.bytes, m.spans = m.next != nil, m.bytes[:0], m.spans[:0]
	if !m.here {
		return nil
	}
	m.key = append(m.key[:0], m.next.Row...)
	for m.next != nil && bytes.Equal(m.next.Row, m.key) {
		s := recordSpan{from: len(m.bytes)}
		m.bytes = append(m.bytes, m.next.Name...)
		s.value = len(m.bytes)
		m.bytes = append(m.bytes, m.next.Value...)
		s.to = len(m.bytes)
		m.spans = append(m.spans, s)
		if err := m.readRecord(); err != nil {
			return err
		}
	}
	return m.decode()
}

// decode makes the items of the current row from its records. An item that a page read again has
// twice is used once.
func (m *merging) decode() error {
	n := 0
	for i, s := range m.spans {
		name := m.bytes[s.from:s.value]
		if i > 0 && bytes.Equal(name, m.bytes[m.spans[i-1].from:m.spans[i-1].value]) {
			n-- // the later record in its place
		}
		if n == len(m.items) {
			m.items = append(m.items, guarded.Wanted{})
		}
		m.items[n].Item = itemOf(name)
		if err := m.items[n].Decode(m.bytes[s.value:s.to]); err != nil {
			return err
		}
		n++
	}
	m.items = m.items[:n]
	return nil
}

// compare compares one row of the target, and reports the wanted rows before it as missing.
func (m *merging) compare(have *Row) error {
	for m.here && bytes.Compare(m.key, have.Key) < 0 {
		if err := m.missing(); err != nil {
			return err
		}
	}
	if !m.here || !bytes.Equal(m.key, have.Key) {
		return m.compareRow(have.Key, nil, have)
	}
	if err := m.compareRow(m.key, m.items, have); err != nil {
		return err
	}
	return m.nextRow()
}

func (m *merging) missing() error {
	if err := m.compareRow(m.key, m.items, nil); err != nil {
		return err
	}
	return m.nextRow()
}

// progressRows is after how many rows of the target progress is reported.
const progressRows = 10_000

func (m *merging) compareRow(key []byte, items []guarded.Wanted, have *Row) error {
	m.counts.Rows += int64(len(items))
	for i := range items {
		t := &m.byTable[items[i].Item.Table]
		t.Rows, t.Cells = t.Rows+1, t.Cells+int64(items[i].Size())
	}
	if m.done++; m.done%progressRows == 0 {
		m.counts.Equal, m.counts.Cells = m.rows.Equal, m.rows.All
		m.full.o.Progress(*m.counts)
	}
	return m.rows.Compare(key, items, have)
}

// decodeNote reads the note of a part; a new part has an empty note.
func decodeNote(p extsort.Part, n *note) error {
	if len(p.Note) == 0 || string(p.Note) == "null" {
		return nil
	}
	if err := json.Unmarshal(p.Note, n); err != nil {
		return fmt.Errorf("read note of a part: %w", err)
	}
	return nil
}
