package verify

import (
	"github.com/tailrace-cdc/replicator/verify/extsort"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// Record is a row that an item should have, as Projection makes it and CompareRange takes it: the
// row, the item (index of its table, two bytes, and canonical key), and the cells or a hash of
// them. A record without a row is an item that the mapping refuses.
type Record = extsort.Record

// Projection turns the items of all tables of a target into records. Not for several goroutines.
type Projection struct {
	families *guarded.Families
	tables   []Table
	p        []*guarded.Projector // by table; made when it is needed
	name     []byte
}

// NewProjection returns a projection of the tables of a target.
func NewProjection(tables []Table) *Projection {
	return newProjection(guarded.FamiliesOf(tables), tables)
}

func newProjection(f *guarded.Families, tables []Table) *Projection {
	return &Projection{families: f, tables: tables, p: make([]*guarded.Projector, len(tables))}
}

// Records calls add with the records of an item of a table; a record is valid until add returns. It
// reports whether the mapping refuses the item.
func (x *Projection) Records(table int, raw []byte, add func(Record)) (refused bool, err error) {
	p := x.p[table]
	if p == nil {
		p = guarded.NewProjector(x.families, &x.tables[table])
		x.p[table] = p
	}
	rows, err := p.Rows(raw)
	x.name = itemRow(x.name[:0], item{Table: table})
	x.name = append(x.name, p.Key()...)
	if guarded.IsRefusal(err) {
		add(Record{Name: x.name}) // no row of a table has an empty key
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for i := range rows {
		add(Record{Row: rows[i].Key, Name: x.name, Value: p.Encode(&rows[i])})
	}
	return false, nil
}
