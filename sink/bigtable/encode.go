package bigtable

import (
	"encoding/binary"
	"slices"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tailrace-cdc/replicator/transform"
)

// exclusiveQualifier stands for the item in a row that only one item can produce.
var exclusiveQualifier = []byte("i")

// request is a CheckAndMutateRowRequest with the messages that it points to, in slabs that the next row
// reuses: building one through the library costs twice as much (docs/decisions/0012-sink-calls.md).
// gRPC has marshalled a request when its call returns, so it may be reused then.
type request struct {
	pb    btpb.CheckAndMutateRowRequest
	reply btpb.CheckAndMutateRowResponse
	guard guard
	row   btpb.Mutation // DeleteFromRow
	sets  []setCell
	dels  []deleteColumn
	fams  []deleteFamily
	body  []*btpb.Mutation // the guard did not match
	skip  []*btpb.Mutation // it did
	mark  []byte           // value of _tr_live and _tr_dead
}

type setCell struct {
	m btpb.Mutation
	o btpb.Mutation_SetCell_
	c btpb.Mutation_SetCell
}

type deleteColumn struct {
	m btpb.Mutation
	o btpb.Mutation_DeleteFromColumn_
	c btpb.Mutation_DeleteFromColumn
	t btpb.TimestampRange
}

type deleteFamily struct {
	m btpb.Mutation
	o btpb.Mutation_DeleteFromFamily_
	c btpb.Mutation_DeleteFromFamily
}

type addToCell struct {
	m      btpb.Mutation
	o      btpb.Mutation_AddToCell_
	c      btpb.Mutation_AddToCell
	column btpb.Value
	time   btpb.Value
	input  btpb.Value
}

// guard is the predicate "the row holds this item at this version or later":
// interleave(chain(column, timestamps), chain(column, timestamps)) over _tr_live and _tr_dead.
// The column is a range of one qualifier, exact for any bytes; a regular expression would need escaping.
type guard struct {
	filter btpb.RowFilter
	from   btpb.ColumnRange_StartQualifierClosed
	to     btpb.ColumnRange_EndQualifierOpen
	since  btpb.TimestampRange
}

func (g *guard) init() {
	since := &btpb.RowFilter{Filter: &btpb.RowFilter_TimestampRangeFilter{TimestampRangeFilter: &g.since}}
	chain := func(family string) *btpb.RowFilter {
		column := &btpb.ColumnRange{FamilyName: family, StartQualifier: &g.from, EndQualifier: &g.to}
		return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: []*btpb.RowFilter{
			{Filter: &btpb.RowFilter_ColumnRangeFilter{ColumnRangeFilter: column}}, since,
		}}}}
	}
	g.filter.Filter = &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: []*btpb.RowFilter{
		chain(transform.LiveFamily), chain(transform.DeadFamily),
	}}}
}

func (g *guard) set(qualifier []byte, version int64) {
	g.from.StartQualifierClosed = qualifier
	g.to.EndQualifierOpen = append(append(g.to.EndQualifierOpen[:0], qualifier...), 0)
	g.since.StartTimestampMicros = version * 1000
}

var requests = sync.Pool{New: func() any {
	r := new(request)
	r.guard.init()
	r.pb.PredicateFilter = &r.guard.filter
	r.row.Mutation = &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}
	return r
}}

// keepSlab is the most mutations a pooled request may hold on to.
const keepSlab = 1024

// free gives the request back, without the item's memory.
func (r *request) free() {
	if cap(r.sets) > keepSlab || cap(r.dels) > keepSlab {
		return
	}
	for i := range r.sets {
		r.sets[i].c.Value, r.sets[i].c.ColumnQualifier = nil, nil
	}
	r.pb.RowKey, r.guard.from.StartQualifierClosed = nil, nil
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
	r.reset(len(row.Cells)+1, 2*len(row.Deletes)+1, len(row.Deletes)+len(families))
	r.guard.set(qualifier, w.Version)
	r.mark = append(append(append(r.mark[:0], w.Item.Table...), 0), w.Item.Key...)
	r.pb.RowKey = row.Key
	r.replace(w, row, qualifier, families)
	r.late(w, row)
	r.pb.FalseMutations, r.pb.TrueMutations = r.body, r.skip
}

// replace builds the body. Deletes stand before sets: no delete removes a cell of the same change, whatever
// its range.
func (r *request) replace(w *transform.Write, row *transform.Row, qualifier []byte, families []string) {
	gone, here := transform.DeadFamily, transform.LiveFamily
	if row.Left {
		gone, here = here, gone
	}
	if wholeRow(row) {
		r.body = append(r.body, &r.row)
	} else {
		if row.Exclusive {
			r.wipe(families, row.KeepHistory)
		}
		for i := range row.Deletes {
			r.delete(&row.Deletes[i])
		}
		// The guard saw nothing of the item at v or later, so this is all of it and older than v.
		r.body = r.deleteColumn(r.body, gone, qualifier, 0, 0)
	}
	for i := range row.Cells {
		c := &row.Cells[i]
		at := w.Version
		if c.Mapped {
			at = c.Time
		}
		if c.Aggregate {
			r.add(c, at)
		} else {
			r.set(c.Family, c.Qualifier, c.Value, at)
		}
	}
	r.set(here, qualifier, r.mark, w.Version)
}

// wholeRow tells whether the row goes with all its cells. Where a rule's removal takes a shared row along,
// the other items' guards must stay: they stop late writes to what is gone.
func wholeRow(row *transform.Row) bool {
	return row.Exclusive && row.Class == transform.ClassR && len(row.KeepHistory) == 0
}

// wipe empties the data families of a row but for those that keep histories.
func (r *request) wipe(families, keep []string) {
	for _, name := range families {
		if !slices.Contains(keep, name) {
			r.delete(&transform.Delete{Family: name})
		}
	}
}

// late builds the skip branch: what a class D change removed must go even if a later version, which knows
// nothing of it, was written first. Only below v, and only where timestamps are versions: a bound on mapped
// timestamps would destroy newer data, and v itself may be this very change, sent again.
func (r *request) late(w *transform.Write, row *transform.Row) {
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
			r.skip = r.deleteColumn(r.skip, d.Family, d.Qualifier, d.From, to)
		}
	}
}

func (r *request) delete(d *transform.Delete) {
	if d.Qualifier != nil {
		r.body = r.deleteColumn(r.body, d.Family, d.Qualifier, d.From, d.To)
		return
	}
	r.fams = r.fams[:len(r.fams)+1]
	f := &r.fams[len(r.fams)-1]
	f.c.FamilyName = d.Family
	f.o.DeleteFromFamily = &f.c
	f.m.Mutation = &f.o
	r.body = append(r.body, &f.m)
}

func (r *request) deleteColumn(into []*btpb.Mutation, family string, qualifier []byte, from, to int64) []*btpb.Mutation {
	r.dels = r.dels[:len(r.dels)+1]
	d := &r.dels[len(r.dels)-1]
	d.c.FamilyName, d.c.ColumnQualifier, d.c.TimeRange = family, qualifier, nil
	if from != 0 || to != 0 {
		d.t.StartTimestampMicros, d.t.EndTimestampMicros = from*1000, to*1000
		d.c.TimeRange = &d.t
	}
	d.o.DeleteFromColumn = &d.c
	d.m.Mutation = &d.o
	return append(into, &d.m)
}

func (r *request) set(family string, qualifier, value []byte, at int64) {
	r.sets = r.sets[:len(r.sets)+1]
	s := &r.sets[len(r.sets)-1]
	s.c.FamilyName, s.c.ColumnQualifier, s.c.Value, s.c.TimestampMicros = family, qualifier, value, at*1000
	s.o.SetCell = &s.c
	s.m.Mutation = &s.o
	r.body = append(r.body, &s.m)
}

// add merges a number with the cell's aggregate; under the guard it happens once per version.
func (r *request) add(c *transform.Cell, at int64) {
	a := new(addToCell)
	a.column.Kind = &btpb.Value_RawValue{RawValue: c.Qualifier}
	a.time.Kind = &btpb.Value_RawTimestampMicros{RawTimestampMicros: at * 1000}
	a.input.Kind = &btpb.Value_IntValue{IntValue: int64(binary.BigEndian.Uint64(c.Value))}
	a.c.FamilyName, a.c.ColumnQualifier, a.c.Timestamp, a.c.Input = c.Family, &a.column, &a.time, &a.input
	a.o.AddToCell = &a.c
	a.m.Mutation = &a.o
	r.body = append(r.body, &a.m)
}

// reset empties the slabs and makes them large enough: messages are pointed to, so they must not move.
func (r *request) reset(sets, dels, fams int) {
	r.body, r.skip = r.body[:0], r.skip[:0]
	r.sets, r.dels, r.fams = room(r.sets, sets), room(r.dels, dels), room(r.fams, fams)
}

func room[T any](slab []T, n int) []T {
	if cap(slab) < n {
		return make([]T, 0, max(n, 8))
	}
	return slab[:0]
}
