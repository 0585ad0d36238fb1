package emit

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
)

// Cell is one cell to set.
type Cell struct {
	Family    string
	Qualifier []byte
	Value     []byte
	Time      int64 // ms; used only when Mapped, else the cell's time is the write's version
	Mapped    bool  // the mapping gave the time, which may be 0
	Aggregate bool  // merge Value (64-bit big-endian) with the family's aggregate instead of setting it
	RawJSON   bool  // a document as DynamoDB sent it: equal documents may differ in their bytes
}

// Delete is a range of cells to delete before the row's cells are set.
type Delete struct {
	Family    string
	Qualifier []byte // nil: the whole family
	From, To  int64  // ms, half open; 0, 0: all versions
	Versioned bool   // the cells' times are versions of this item: a skipped write may still delete [0, its version)
}

// Row is what one change does to one row: if the row does not hold the item at this version or
// later, wipe it when Exclusive (all families but KeepHistory), run Deletes, then set Cells and the
// item's marker.
type Row struct {
	Key         []byte
	Class       ir.Class
	Left        bool     // the item leaves the row: mark it dead there; Cells are then archived copies or emptied columns
	Exclusive   bool     // delete the row as a whole first
	KeepHistory []string // families that the wipe spares
	Deletes     []Delete
	Cells       []Cell
}

// Item names an item in guards and markers.
type Item struct {
	Guard    [16]byte // the first 16 bytes of the SHA-256 over pipeline, table and canonical key
	Pipeline string
	Table    string
	Key      []byte // canonical
	Sealed   bool   // a key attribute is personal data: the sink must not write the key in clear
}

// Write is all that one change does, or several coalesced ones: rows entered first, rows left last.
// A Write is reused: what it holds is valid until the next call that fills it.
type Write struct {
	Item    Item
	Version change.Version
	Rows    []Row
	// Heals is set when the item's rows and columns depend on its key alone, so that this write
	// repairs whatever an earlier dead letter of the item left behind.
	Heals bool

	mem *memory
}
