package bigtable

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/transform"
)

// exclusiveQualifier represents the item in the guard of a row that only one item can produce.
var exclusiveQualifier = []byte(guard.Exclusive)

// request is a conditional write of one row: mutations for a row where the guard does not match,
// and for one where it does. It marshals itself (wire.go), and is used again for the next row.
type request struct {
	of             traffic
	table, profile string
	key            []byte
	guard          predicate
	filter         []byte // a marshalled RowFilter in place of the guard
	body           []op   // where the predicate does not match
	skip           []op   // where it matches
	guardValue     []byte // value of _tr_live and _tr_dead
	seal           *guard.Sealer
	fresh          func() error // asked before every attempt, see Resync; nil: not asked

	matched bool // the reply
}

// predicate is "the row holds this item at this version or later": interleave(chain(column,
// timestamps), chain(column, timestamps)) over _tr_live and _tr_dead. The column is a range of one
// qualifier, which is exact for any bytes. A regular expression would need escaping.
type predicate struct {
	qualifier []byte
	version   change.Version
}

// op is one mutation. Times are in ms: versions, or times that the mapping sets.
type op struct {
	kind      opKind
	family    string
	qualifier []byte
	value     []byte // set: the cell's; add: a 64-bit integer, big-endian
	from, to  int64  // deleteColumn: half open; 0, 0 is all. set, add: the cell's time is from
}

type opKind uint8

// The numbers are the field numbers of google.bigtable.v2.Mutation.
const (
	opSet          opKind = 1
	opDeleteColumn opKind = 2
	opDeleteFamily opKind = 3
	opDeleteRow    opKind = 4
	opAdd          opKind = 5
)

var requests = sync.Pool{New: func() any { return new(request) }}

// maxPooledOps is the capacity in mutations up to which a request is pooled.
const maxPooledOps = 1024

// free gives the request back to the pool, without references to the item's memory.
func (r *request) free() {
	if cap(r.body) > maxPooledOps || cap(r.skip) > maxPooledOps {
		return
	}
	clear(r.body)
	clear(r.skip)
	r.key, r.guard, r.filter, r.seal, r.fresh = nil, predicate{}, nil, nil, nil
	r.of = ofStream
	requests.Put(r)
}

// encode makes the request for one row of a checked write. families are the target's data families.
//
// Rule 6: A write at version v leaves an item that holds v or later untouched. The body is executed
// only where the guard finds neither the item nor its tombstone at v or later.
func (r *request) encode(w *transform.Write, row *transform.Row, families []string) {
	qualifier := w.Item.Guard[:]
	if row.Class == transform.ClassR {
		qualifier = exclusiveQualifier
	}
	r.body, r.skip = r.body[:0], r.skip[:0]
	r.guard = predicate{qualifier, w.Version}
	r.key = row.Key
	r.setGuardValue(&w.Item, qualifier)
	r.buildBody(w, row, qualifier, families)
	r.buildSkip(w, row)
}

// setGuardValue sets the value of the row's guard.
func (r *request) setGuardValue(item *transform.Item, qualifier []byte) {
	if item.Sealed {
		named := guard.Guard{Pipeline: item.Pipeline, Table: item.Table, Key: item.Key}
		r.guardValue = r.seal.Append(r.guardValue[:0], named, r.key, qualifier)
		return
	}
	r.guardValue = guard.Append(r.guardValue[:0], item.Pipeline, item.Table, item.Key)
}

// buildBody builds the body: what replaces the item's cells. Deletes come before sets, so that no
// delete removes a cell of the same change, whatever its range.
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
		// The guard found nothing at v or later, so all cells of this column are older than v.
		r.body = append(r.body, deleteColumn(gone, qualifier, 0, 0))
	}
	for i := range row.Cells {
		c := &row.Cells[i]
		at := int64(w.Version)
		if c.Mapped {
			at = c.Time
		}
		kind := opSet
		if c.Aggregate { // the guard ensures that it is added once per version
			kind = opAdd
		}
		r.body = append(r.body, op{kind: kind, family: c.Family, qualifier: c.Qualifier, value: c.Value, from: at})
	}
	at := int64(w.Version)
	r.body = append(r.body, op{kind: opSet, family: here, qualifier: qualifier, value: r.guardValue, from: at})
}

// wholeRow reports whether the row is deleted with all its cells. Where a rule's removal deletes a
// shared row, the guards of the other items must remain, because they stop late writes to what was
// deleted.
func wholeRow(row *transform.Row) bool {
	return row.Exclusive && row.Class == transform.ClassR && len(row.KeepHistory) == 0
}

// emptyFamilies deletes the data families of a row, except for those that keep histories.
func (r *request) emptyFamilies(families, keep []string) {
	for _, name := range families {
		if !slices.Contains(keep, name) {
			r.delete(&transform.Delete{Family: name})
		}
	}
}

// buildSkip builds the mutations for a row that holds a later version. What a by-diff change (class
// D) removes must be removed even then, because the later version, which was written first, may not
// mention it. It removes only cells below v, because those at v may be of this change, sent before;
// and only where timestamps are versions, because a bound on mapped timestamps would destroy newer
// data.
func (r *request) buildSkip(w *transform.Write, row *transform.Row) {
	if row.Class != transform.ClassD {
		return
	}
	for i := range row.Deletes {
		d := &row.Deletes[i]
		from, to := d.From, int64(w.Version)
		if d.To != 0 {
			to = min(to, d.To)
		}
		if d.Versioned && d.Qualifier != nil && from < to {
			r.skip = append(r.skip, deleteColumn(d.Family, d.Qualifier, from, to))
		}
	}
}

// delete appends a delete of the write to the body.
func (r *request) delete(d *transform.Delete) {
	if d.Qualifier != nil {
		r.body = append(r.body, deleteColumn(d.Family, d.Qualifier, d.From, d.To))
		return
	}
	r.body = append(r.body, op{kind: opDeleteFamily, family: d.Family})
}

// deleteColumn deletes the cells of a column from from to to, exclusive; all with 0, 0.
func deleteColumn(family string, qualifier []byte, from, to int64) op {
	return op{kind: opDeleteColumn, family: family, qualifier: qualifier, from: from, to: to}
}

// encodeReplacement makes the request that replaces a row and its guard where the guard has exactly
// the version broken. Cells that the broken write left above the write's version are deleted,
// because they would hide what is set.
func (r *request) encodeReplacement(w *transform.Write, row *transform.Row, families []string,
	broken change.Version) (err error) {
	r.encode(w, row, families)
	var deletes []op
	if !wholeRow(row) {
		for i := range row.Cells {
			if c := &row.Cells[i]; !c.Mapped && !c.Aggregate {
				deletes = append(deletes, deleteColumn(c.Family, c.Qualifier, int64(w.Version)+1, int64(broken)+1))
			}
		}
		deletes = append(deletes, deleteColumn(transform.LiveFamily, r.guard.qualifier, 0, 0),
			deleteColumn(transform.DeadFamily, r.guard.qualifier, 0, 0))
	}
	r.skip, r.body = append(deletes, r.body...), nil
	r.filter, err = proto.Marshal(exactGuard(r.guard.qualifier, broken))
	return err
}

// Requests returns what Apply sends for a write, in its order, as data. The error is a
// *RejectedError. Keys that have to be sealed are not supported: see SealedRequests.
func Requests(w *transform.Write, families []string) (all []RowWrite, err error) {
	return SealedRequests(nil, w, families)
}

// SealedRequests is Requests for items with keys that may have to be sealed.
func SealedRequests(seal *Sealer, w *transform.Write, families []string) (all []RowWrite, err error) {
	if r := checkWrite(w); r != nil {
		return nil, fmt.Errorf("check write: %w", r)
	}
	r := &request{seal: seal}
	for row := range inRowOrder(w.Rows) {
		r.encode(w, row, families)
		all = append(all, RowWrite{
			Row: bytes.Clone(r.key), Qualifier: bytes.Clone(r.guard.qualifier), Version: r.guard.version,
			Body: mutations(r.body), Skip: mutations(r.skip),
		})
	}
	return all, nil
}

// mutations copies the mutations of a request, which is used again.
func mutations(ops []op) (all []RowMutation) {
	for _, o := range ops {
		all = append(all, RowMutation{Kind: MutationKind(o.kind), Family: o.family,
			Qualifier: bytes.Clone(o.qualifier), Value: bytes.Clone(o.value), From: o.from, To: o.to})
	}
	return all
}
