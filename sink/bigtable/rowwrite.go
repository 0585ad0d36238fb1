package bigtable

import (
	"iter"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// inRowOrder yields the rows of a write in the order in which they are sent. Rows that the item
// enters come first, so that a reader finds a moving item twice rather than not at all.
func inRowOrder(rows []transform.Row) iter.Seq[*transform.Row] {
	return func(yield func(*transform.Row) bool) {
		for _, left := range [...]bool{false, true} {
			for i := range rows {
				if rows[i].Left == left && !yield(&rows[i]) {
					return
				}
			}
		}
	}
}

// RowWrite is the request for one row: Skip is executed where the row has a guard of the item at
// Version or later in either guard family, Body where it has none.
type RowWrite struct {
	Row       []byte
	Qualifier []byte // of the item's guards
	Version   change.Version
	Body      []RowMutation
	Skip      []RowMutation
}

// RowMutation is one mutation of a Conditional.
type RowMutation struct {
	Kind      MutationKind
	Family    string
	Qualifier []byte
	Value     []byte
	From, To  int64 // ms. Cells to delete, half open, 0, 0 for all; From is the time of a cell that is set
}

// MutationKind is what a mutation does: the number of its field in google.bigtable.v2.Mutation.
type MutationKind uint8

// The kinds of mutations.
const (
	SetCell      MutationKind = 1
	DeleteColumn MutationKind = 2
	DeleteFamily MutationKind = 3
	DeleteRow    MutationKind = 4
	addToCell    MutationKind = 5
)
