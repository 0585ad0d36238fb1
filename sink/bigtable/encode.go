package bigtable

import (
	"slices"
	"sync"

	"github.com/tailrace-cdc/replicator/transform"
)

// exclusiveQualifier stands for the item in a row that only one item can produce.
var exclusiveQualifier = []byte("i")

// request is a conditional write of one row: what is written where the guard does not match, and where it does.
// It goes to the wire by itself (wire.go), and is used again for the next row.
type request struct {
	table, profile string
	key            []byte
	guard          guard
	predicate      []byte // a marshalled RowFilter in place of the guard
	body           []op   // the predicate did not match
	skip           []op   // it did
	guardValue     []byte // value of _tr_live and _tr_dead

	matched bool // the answer
}

// guard is the predicate "the row holds this item at this version or later":
// interleave(chain(column, timestamps), chain(column, timestamps)) over _tr_live and _tr_dead.
// The column is a range of one qualifier, exact for any bytes; a regular expression would need escaping.
type guard struct {
	qualifier []byte
	version   int64
}

// op is one mutation. Times are in ms.
type op struct {
	kind      opKind
	family    string
	qualifier []byte
	value     []byte // set: the cell's; add: a 64-bit integer, big-endian
	from, to  int64  // deleteColumn: half open; 0, 0 is all. set, add: the cell's time is from
}

type opKind uint8

// The numbers are those of the fields of google.bigtable.v2.Mutation.
const (
	opSet          opKind = 1
	opDeleteColumn opKind = 2
	opDeleteFamily opKind = 3
	opDeleteRow    opKind = 4
	opAdd          opKind = 5
)

var requests = sync.Pool{New: func() any { return new(request) }}

// maxPooledOps is the most mutations a pooled request may hold on to.
const maxPooledOps = 1024

// free gives the request back, without the item's memory.
func (r *request) free() {
	if cap(r.body) > maxPooledOps || cap(r.skip) > maxPooledOps {
		return
	}
	clear(r.body)
	clear(r.skip)
	r.key, r.guard, r.predicate = nil, guard{}, nil
	requests.Put(r)
}

// encode turns one row of a checked write into its call. families are the target's data families.
//
// Rule 6: A write at version v leaves an item that holds v or later untouched. The body runs only where the
// guard found neither the item nor its tombstone at v or later.
func (r *request) encode(w *transform.Write, row *transform.Row, families []string) {
	qualifier := w.Item.Guard[:]
	if row.Class == transform.ClassR {
		qualifier = exclusiveQualifier
	}
	r.body, r.skip = r.body[:0], r.skip[:0]
	r.guard = guard{qualifier, w.Version}
	r.guardValue = append(append(append(r.guardValue[:0], w.Item.Table...), 0), w.Item.Key...)
	r.key = row.Key
	r.buildBody(w, row, qualifier, families)
	r.buildSkip(w, row)
}

// buildBody builds the body. Deletes stand before sets: no delete removes a cell of the same change, whatever
// its range.
func (r *request) buildBody(w *transform.Write, row *transform.Row, qualifier []byte, families []string) {
	gone, here := transform.DeadFamily, transform.LiveFamily
	if row.Left {
		gone, here = here, gone
	}
	if wholeRow(row) {
		r.body = append(r.body, op{kind: opDeleteRow})
	} else {
		if row.Exclusive {
			r.emptyFamilies(families, row.KeepHistory)
		}
		for i := range row.Deletes {
			r.delete(&row.Deletes[i])
		}
		// The guard saw nothing of the item at v or later, so this is all of it and older than v.
		r.body = append(r.body, deleteColumn(gone, qualifier, 0, 0))
	}
	for i := range row.Cells {
		c := &row.Cells[i]
		at := w.Version
		if c.Mapped {
			at = c.Time
		}
		kind := opSet
		if c.Aggregate { // under the guard it is merged once per version
			kind = opAdd
		}
		r.body = append(r.body, op{kind: kind, family: c.Family, qualifier: c.Qualifier, value: c.Value, from: at})
	}
	r.body = append(r.body, op{kind: opSet, family: here, qualifier: qualifier, value: r.guardValue, from: w.Version})
}

// wholeRow tells whether the row goes with all its cells. Where a rule's removal takes a shared row along,
// the other items' guards must stay: they stop late writes to what is gone.
func wholeRow(row *transform.Row) bool {
	return row.Exclusive && row.Class == transform.ClassR && len(row.KeepHistory) == 0
}

// emptyFamilies deletes the data families of a row but for those that keep histories.
func (r *request) emptyFamilies(families, keep []string) {
	for _, name := range families {
		if !slices.Contains(keep, name) {
			r.delete(&transform.Delete{Family: name})
		}
	}
}

// buildSkip builds the skip branch: what a class D change removed must go even if a later version, which knows
// nothing of it, was written first. Only below v, and only where timestamps are versions: a bound on mapped
// timestamps would destroy newer data, and v itself may be this very change, sent again.
func (r *request) buildSkip(w *transform.Write, row *transform.Row) {
	if row.Class != transform.ClassD {
		return
	}
	for i := range row.Deletes {
		d := &row.Deletes[i]
		to := w.Version
		if d.To != 0 {
			to = min(to, d.To)
		}
		if d.Versioned && d.Qualifier != nil && d.From < to {
			r.skip = append(r.skip, deleteColumn(d.Family, d.Qualifier, d.From, to))
		}
	}
}

func (r *request) delete(d *transform.Delete) {
	if d.Qualifier != nil {
		r.body = append(r.body, deleteColumn(d.Family, d.Qualifier, d.From, d.To))
		return
	}
	r.body = append(r.body, op{kind: opDeleteFamily, family: d.Family})
}

func deleteColumn(family string, qualifier []byte, from, to int64) op {
	return op{kind: opDeleteColumn, family: family, qualifier: qualifier, from: from, to: to}
}
