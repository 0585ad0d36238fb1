// Package rowwrite describes the conditional write of a row as data, for who executes it without a server.
package rowwrite

import (
	"iter"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// InOrder yields the rows of a write in the order in which they are sent: those that the item enters first, so that a
// reader sees an item that moves twice rather than not at all.
func InOrder(rows []transform.Row) iter.Seq[*transform.Row] {
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

// Conditional is the request for one row: Skip is executed where the row has a guard of the item at Version or later in
// either guard family, Body where it has none.
type Conditional struct {
	Row       []byte
	Qualifier []byte // of the item's guards
	Version   change.Version
	Body      []Mutation
	Skip      []Mutation
}

// Mutation is one mutation of a Conditional.
type Mutation struct {
	Kind      Kind
	Family    string
	Qualifier []byte
	Value     []byte
	From, To  int64 // ms. Cells to delete, half open, 0, 0 for all; From is the time of a cell that is set
}

// Kind is what a mutation does: the number of its field in google.bigtable.v2.Mutation.
type Kind uint8

// The kinds of mutations.
const (
	SetCell      Kind = 1
	DeleteColumn Kind = 2
	DeleteFamily Kind = 3
	DeleteRow    Kind = 4
	AddToCell    Kind = 5
)
