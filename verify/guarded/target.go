package guarded

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
)

// Table is one source table of a target. All tables of the target must be given, because they may
// share rows.
type Table struct {
	Program *transform.Program

	// Parts is how many parts Page reads. 0: the items of this table are not compared, and what its
	// guards own in the target is left out.
	Parts int

	// Page reads one page of a part. It tries again by itself, paces itself, and returns an error
	// only when the comparison shall end. Empty after: from the beginning.
	Page func(ctx context.Context, part int, after string) (*source.ItemPage, error)

	// Outlives is Program.Outlives; nil: no cell may remain without its item.
	Outlives func(transform.CellAlone) transform.Remaining

	Items, Bytes int64 // how many there are about, for the estimate of room on disk
}

// PartsOf names how the tables are divided: a part of another division holds other items.
// DynamoDB's estimate of a table's size, by which it is divided, changes every few hours.
func PartsOf(tables []Table) string {
	name := " parts"
	for i := range tables {
		name += fmt.Sprint(" ", tables[i].Parts)
	}
	return name
}

// Row is a row of the target with its guards, as (*bigtable.Client).GuardedRows reads it.
type Row struct {
	Key        []byte
	Cells      []bigtable.Cell
	Live, Dead []bigtable.Cell
}

// Clone returns a copy that stays valid.
func (r *Row) Clone() *Row {
	cells := func(list []bigtable.Cell) []bigtable.Cell {
		out := slices.Clone(list)
		for i := range out {
			out[i].Qualifier, out[i].Value = bytes.Clone(out[i].Qualifier), bytes.Clone(out[i].Value)
		}
		return out
	}
	return &Row{Key: bytes.Clone(r.Key), Cells: cells(r.Cells), Live: cells(r.Live), Dead: cells(r.Dead)}
}

// Target reads the rows of one target table with the cells that Views selects, the newest cell of
// each column of _tr_live and of _tr_dead, and also those rows that have nothing but tombstones. A
// row is valid until the callback returns; an error of the callback ends the reading and is
// returned.
type Target interface {
	// Scan reads all rows in the order of their keys.
	Scan(ctx context.Context, f func(*Row) error) error
	// Lookup reads some rows, given and returned in the order of their keys. Rows that do not exist
	// are left out.
	Lookup(ctx context.Context, keys []string, f func(*Row) error) error
	// GuardOf decodes the value of a guard. It returns an error for a value that no replicator
	// wrote in this place.
	GuardOf(value, row, qualifier []byte) (bigtable.Guard, error)
}

// Families are the data families of a target, by which cells are sorted and named.
type Families struct {
	List []transform.Family
	// hashed: only the newest cell of a column matters, and it never ages, so that a row can be
	// compared by one hash.
	hashed []bool
}

// FamiliesOf returns the families of all tables.
func FamiliesOf(tables []Table) *Families {
	var programs []*transform.Program
	for i := range tables {
		programs = append(programs, tables[i].Program)
	}
	f := &Families{List: AllFamilies(programs)}
	for _, x := range f.List {
		f.hashed = append(f.hashed, x.MaxVersions == 1 && x.MaxAge == 0 && x.Aggregate == "")
	}
	return f
}

// Index returns the index of a family; -1 for one outside of the mapping.
func (f *Families) Index(name string) int {
	for i := range f.List {
		if f.List[i].Name == name {
			return i
		}
	}
	return -1
}

// Views returns what must be read of the rows for the programs of one target: as many versions of
// each family as it keeps.
func Views(programs ...*transform.Program) []bigtable.View {
	var views []bigtable.View
	for _, f := range AllFamilies(programs) {
		views = append(views, bigtable.View{Family: f.Name, Versions: f.MaxVersions})
	}
	return views
}

// AllFamilies returns the families of all programs, without duplicates.
func AllFamilies(programs []*transform.Program) []transform.Family {
	var out []transform.Family
	seen := map[string]bool{}
	for _, p := range programs {
		for _, f := range p.Families() {
			if !seen[f.Name] {
				seen[f.Name] = true
				out = append(out, f)
			}
		}
	}
	return out
}
