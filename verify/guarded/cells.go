package guarded

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// Cells are the cells of a row of the target in the order of the families, of qualifiers, and
// newest first, with whether some item explains them.
type Cells struct {
	families  *Families
	Now       change.Millis // for families with a maximum age
	List      []Held
	explained int
	dec       change.Decoder
	content   []byte
}

// Held is one cell of a row.
type Held struct {
	*bigtable.Cell
	family    int
	ms        int64
	explained bool
	emptied   bool // the newest version of its column is empty
}

// NewCells returns an empty row.
func NewCells(f *Families) Cells { return Cells{families: f} }

// Explained reports whether some item explains the cell.
func (h *Held) Explained() bool { return h.explained }

// Load takes the cells of a row, without those outside of the mapping. A nil row has none.
func (r *Cells) Load(row *Row) {
	r.List, r.explained = r.List[:0], 0
	if row == nil {
		return
	}
	sorted := true
	family, name := -1, ""
	for i := range row.Cells {
		c := &row.Cells[i]
		if c.Family != name {
			family, name = r.families.Index(c.Family), c.Family
		}
		if family < 0 {
			continue
		}
		h := Held{Cell: c, family: family, ms: c.Time.UnixMilli()}
		if n := len(r.List); n > 0 && sorted {
			sorted = compareHeld(&r.List[n-1], &h) <= 0
		}
		r.List = append(r.List, h)
	}
	if !sorted {
		slices.SortStableFunc(r.List, func(a, b Held) int { return compareHeld(&a, &b) })
	}
	for i := range r.List {
		if h := &r.List[i]; i > 0 && r.sameColumn(i-1, i) {
			h.emptied = r.List[i-1].emptied
		} else {
			h.emptied = len(h.Value) == 0
		}
	}
}

func compareHeld(a, b *Held) int {
	return cmp.Or(cmp.Compare(a.family, b.family), bytes.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.ms, a.ms))
}

// Explain marks a cell as one that some item explains.
func (r *Cells) Explain(i int) {
	if !r.List[i].explained {
		r.List[i].explained = true
		r.explained++
	}
}

// hashIs reports whether the cells of the hashed families have this hash. It marks them as
// explained in either case: a different hash is reported as a difference of the item.
func (r *Cells) hashIs(hash []byte) bool {
	r.content = r.content[:0]
	for i := range r.List {
		c := &r.List[i]
		if !r.families.hashed[c.family] {
			continue
		}
		r.Explain(i)
		if i == 0 || !r.sameColumn(i-1, i) { // else the newest version hides it
			r.content = appendContent(r.content, c.family, c.Qualifier, c.Value)
		}
	}
	sum := sha256.Sum256(r.content)
	return bytes.Equal(sum[:rowHash], hash)
}

func (r *Cells) sameColumn(i, j int) bool {
	return r.List[i].family == r.List[j].family && bytes.Equal(r.List[i].Qualifier, r.List[j].Qualifier)
}

// column returns the range of the cells of a column.
func (r *Cells) column(family int, qualifier []byte) (from, to int) {
	at := func(c Held, _ int) int {
		return cmp.Or(cmp.Compare(c.family, family), bytes.Compare(c.Qualifier, qualifier))
	}
	from, _ = slices.BinarySearchFunc(r.List, 0, at)
	for to = from; to < len(r.List) && at(r.List[to], 0) == 0; to++ {
	}
	return from, to
}

// expired reports whether a cell with this time may have been collected, or will be.
func (r *Cells) expired(family int, ms int64) bool {
	f := &r.families.List[family]
	return f.Ages() && ms < int64(r.Now)-f.MaxAge.Milliseconds()
}

// Expired reports whether a cell of the row may have been collected, or will be.
func (r *Cells) Expired(h *Held) bool { return r.expired(h.family, h.ms) }

// Outcome is how a wanted cell compares with the row, or what a cell of the row is to an item that
// should not have it.
type Outcome int

const (
	IsEqual Outcome = iota
	IsMissing
	IsOther  // the row has another value
	IsAged   // the row lacks it, and need not have it: it has aged away, or newer ones have pushed it out
	IsShared // the row has another value, and other items may write the same cell

	// Of cells that the item should not have:
	IsOlder           // hidden below a wanted one
	IsExtra           // it is the item's
	IsKept            // it is the item's, and may remain without it
	IsKeptWhileAbsent // it is the item's, whose guard is in the row, and may remain while there is no such item
	IsTooOld          // it is the item's, and may be collected at any time
	IsOfOthers        // it is not known to be the item's
)

// Compare compares one wanted cell with the row, and explains the cells of its column that it
// accounts for. written is the version of the item's guard in the row, 0 without one: a cell
// without a time of its own is as old as that. at is the index of the cell that is equal, or has
// another value.
func (r *Cells) Compare(w *WantedCell, written change.Version) (result Outcome, at int) {
	from, to := r.column(w.family, w.qualifier)
	if w.time != unmapped {
		return r.compareTime(w, from, to)
	}
	if from == to {
		if written > 0 && r.expired(w.family, int64(written)) {
			return IsAged, 0
		}
		return IsMissing, 0
	}
	if !r.matches(w, r.List[from].Value) {
		for i := from + 1; i < to; i++ {
			r.Explain(i)
		}
		return IsOther, from
	}
	for i := from; i < to; i++ {
		r.Explain(i) // older versions
	}
	return IsEqual, from
}

// compareTime compares a wanted cell that has a time of its own with the cells [from, to) of its
// column.
func (r *Cells) compareTime(w *WantedCell, from, to int) (result Outcome, at int) {
	f := &r.families.List[w.family]
	for i := from; i < to; i++ {
		if r.List[i].ms != w.time {
			continue
		}
		if r.expired(w.family, w.time) || r.matches(w, r.List[i].Value) {
			r.Explain(i)
			return IsEqual, i
		}
		return IsOther, i
	}
	newer := 0
	for newer < to-from && r.List[from+newer].ms > w.time {
		newer++
	}
	if r.expired(w.family, w.time) || f.MaxVersions > 0 && newer >= f.MaxVersions {
		return IsAged, 0
	}
	return IsMissing, 0
}

// matches reports whether the target's value is the wanted one. An aggregate includes earlier
// values too, and a sketch of distinct values cannot be compared: that it exists must be enough.
func (r *Cells) matches(w *WantedCell, have []byte) bool {
	switch kind := r.families.List[w.family].Aggregate; kind {
	case "":
	case "hll":
		return true
	default:
		return aggregateIncludes(kind, w.value, have)
	}
	if w.rawJSON {
		have = canonicalDocument(&r.dec, have)
	}
	if w.hashed {
		sum := sha256.Sum256(have)
		have = sum[:16]
	}
	return bytes.Equal(w.value, have)
}

// canonicalDocument returns a document in the canonical form of the projection, because the target
// has it as it was written, with its JSON in any order. It returns bytes that are not a document
// unchanged.
func canonicalDocument(d *change.Decoder, document []byte) []byte {
	d.Reset()
	img, err := d.Image(document)
	if err != nil {
		return document
	}
	return img.AppendJSON(nil)
}

// aggregateIncludes reports whether the aggregate have, of the given kind, may include the value
// want.
func aggregateIncludes(aggregate string, want, have []byte) bool {
	if len(want) != 8 || len(have) != 8 {
		return false
	}
	w, h := int64(binary.BigEndian.Uint64(want)), int64(binary.BigEndian.Uint64(have))
	if strings.HasPrefix(aggregate, "min") {
		return h <= w
	}
	return h >= w
}

// unmapped is the time of a cell that has the version of its write as its timestamp, which the
// source does not contain.
const unmapped = math.MinInt64
