package transform

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/edit"
	"github.com/tailrace-cdc/replicator/transform/emit"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// The inputs of a resync, which makes one item's rows true again without an old image.
type (
	Resync      = emit.Resync
	ResyncFound = emit.ResyncFound
	RowRead     = emit.RowRead
	FamilyRead  = emit.FamilyRead
	ColumnRange = emit.ColumnRange
	HeldRow     = emit.HeldRow
	HeldCell    = emit.HeldCell
)

// RowsToRead returns the rows that must be read into r.Held before Resync; none where a replacement
// of the row by the item's key alone makes it true.
func (p *Program) RowsToRead(d *change.Decoder, r *Resync) ([]RowRead, error) {
	return emit.RowsToRead(p.prog, d, r)
}

// Resync fills w with the write that makes the item's rows true at r.Version: the rows of its
// projection, r.Rows, and the rows in r.Held with a guard of the item. The error is a *Refusal when
// the mapping does not take the item.
func (p *Program) Resync(d *change.Decoder, r *Resync, w *Write) error {
	return emit.WriteResync(p.prog, d, r, w)
}

// Cells that may remain in the target without an item.
type (
	Outlive       = emit.Outlive
	CellAlone     = emit.Alone
	Remaining     = emit.Remaining
	RemainingCode = emit.RemainingCode
)

// Whether a cell may remain without an item.
const (
	RemainsNot         = emit.RemainsNot
	RemainsWhileAbsent = emit.RemainsWhileAbsent // while there is no such item
	Remains            = emit.Remains            // whether or not there is one
)

// MayOutlive lists what may remain in the target without its item; empty when nothing may. Outlives
// is the same check for one cell.
func (p *Program) MayOutlive() []Outlive { return emit.MayOutlive(p.prog) }

// Outlives returns whether a cell may remain in the target although its item is absent, and why.
func (p *Program) Outlives(c CellAlone) Remaining { return emit.Outlives(p.prog, &c) }

// KeepsRow reports whether a row may hold an item that is absent (on_ttl_expiry: keep). It is the
// guard that may remain, whether or not a reader gets a cell.
func (p *Program) KeepsRow(keys change.Image, row []byte) bool {
	return emit.KeepsRow(p.prog, keys, row)
}

// MayHold reports whether a row may hold a cell of some item in a column. False is a proof.
func (p *Program) MayHold(row []byte, family, qualifier string) bool {
	return emit.MayHold(p.prog, row, family, qualifier)
}

// The difference of two mappings.
type (
	MappingKind   = edit.Kind
	MappingChange = edit.Change
)

// The kinds of a MappingChange.
const (
	SameCells = edit.SameCells
	SameRows  = edit.SameRows
	RowsMove  = edit.RowsMove
)

// DiffMapping compares two programs of one table. oldAll and newAll are the programs of all tables
// of the target, each from one CompileAll, because a row's class depends on all of them.
func DiffMapping(from, to *Program, oldAll, newAll []*Program) MappingChange {
	return edit.Diff(from.prog, to.prog, inner(oldAll), inner(newAll))
}

// inner returns the compiled programs; a table with errors in its mapping has none.
func inner(ps []*Program) (out []*ir.Program) {
	for _, p := range ps {
		if p != nil {
			out = append(out, p.prog)
		}
	}
	return out
}
