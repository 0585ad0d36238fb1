package transform

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// read returns what the sink reads of rows for a resync: the guards of the item, and the newest
// cells of the columns that the reads name.
func (m *model) read(item Item, reads []RowRead) (held []HeldRow) {
	for _, r := range reads {
		h := HeldRow{Key: r.Key}
		row := m.rows[string(r.Key)]
		if row == nil {
			held = append(held, h)
			continue
		}
		for _, c := range row.cells {
			mine := c.qual == string(item.Guard[:])
			if r.Class == ClassR {
				mine = c.qual == "i" && c.value == item.Table+"\x00"+string(item.Key)
			}
			switch {
			case c.family == LiveFamily && mine:
				h.Live = change.Version(c.time)
			case c.family == DeadFamily && mine:
				h.Dead = max(h.Dead, change.Version(c.time))
			case wanted(r.Families, c):
				h.Cells = append(h.Cells, HeldCell{Family: c.family, Qualifier: []byte(c.qual), Value: []byte(c.value),
					Time: c.time})
			}
		}
		slices.SortFunc(h.Cells, func(a, b HeldCell) int {
			if c := strings.Compare(a.Family, b.Family); c != 0 {
				return c
			}
			if c := bytes.Compare(a.Qualifier, b.Qualifier); c != 0 {
				return c
			}
			return int(b.Time - a.Time)
		})
		h.Cells = slices.CompactFunc(h.Cells, func(a, b HeldCell) bool {
			return a.Family == b.Family && bytes.Equal(a.Qualifier, b.Qualifier)
		})
		held = append(held, h)
	}
	return held
}

func wanted(families []FamilyRead, c modelCell) bool {
	return slices.ContainsFunc(families, func(f FamilyRead) bool {
		return f.Family == c.family && (len(f.Ranges) == 0 || slices.ContainsFunc(f.Ranges, func(r ColumnRange) bool {
			return c.qual >= string(r.From) && (r.To == nil || c.qual < string(r.To))
		}))
	})
}

// resync does what the lane does with an item that was read from the table: "" is an item that is
// absent.
func (m *model) resync(t tb, p *Program, r *Resync) *Write {
	t.Helper()
	var d change.Decoder
	reads, err := p.RowsToRead(&d, r)
	if err != nil {
		t.Fatalf("rows to read: %v", err)
	}
	r.Held = m.read(itemOf(t, p, r.Keys), reads)
	w := new(Write)
	if err := p.Resync(new(change.Decoder), r, w); err != nil {
		t.Fatalf("resync: %v", err)
	}
	if w.Version != r.Version {
		t.Fatalf("the write has version %d, want %d", w.Version, r.Version)
	}
	checkWrite(t, w)
	m.apply(t, w)
	return w
}

// itemOf names an item in guards.
func itemOf(t tb, p *Program, keys []byte) Item {
	t.Helper()
	w := writeOf(t, p, &change.Change{Op: change.Remove, TTL: true, Version: 1, Keys: keys, Old: keys})
	return Item{Guard: w.Item.Guard, Table: w.Item.Table, Key: slices.Clone(w.Item.Key)}
}

// resyncOf returns the resync of an item; item is "" where it is absent.
func resyncOf(t tb, p *Program, key, item string, version int64) *Resync {
	t.Helper()
	r := &Resync{Keys: keysOf(t, p, []byte("{"+key+"}")), Version: change.Version(version)}
	if item != "" {
		r.Item = []byte(item)
	}
	return r
}

// rowsOf returns the rows of items, as a difference or a letter names them.
func rowsOf(t tb, p *Program, items ...string) (rows [][]byte) {
	t.Helper()
	for _, item := range items {
		projected, err := p.Project(image(t, []byte(item)))
		if err != nil {
			continue
		}
		for _, r := range projected {
			rows = append(rows, r.Key)
		}
	}
	return rows
}
