package verify

import (
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// What the comparison of single rows shares with this package.
type (
	Table          = guarded.Table
	Target         = guarded.Target
	Row            = guarded.Row
	Kind           = guarded.Kind
	BigtableTarget = guarded.BigtableTarget
	CellDifference = guarded.CellDifference
	Content        = guarded.Content

	item = guarded.Item
)

// The kinds of a Difference. A missing or extra row counts once, whatever cells it has.
const (
	MissingRow  = guarded.MissingRow
	ExtraRow    = guarded.ExtraRow
	MissingCell = guarded.MissingCell
	ExtraCell   = guarded.ExtraCell
	Value       = guarded.Value
	// A full comparison lists these beside them.
	Stale       = guarded.Stale
	NoGuard     = guarded.NoGuard
	FutureGuard = guarded.FutureGuard
	Foreign     = guarded.Foreign
	Sealed      = guarded.Sealed
	Unowned     = guarded.Unowned
	Refusal     = guarded.NotTaken
)

// Views returns what is read of a target for the programs that write it: as many versions of each
// family as it keeps.
func Views(programs ...*transform.Program) []bigtable.View { return guarded.Views(programs...) }

// NewTarget returns a table of Bigtable as a Target. The programs are the programs of all source
// tables that write it.
var NewTarget = guarded.NewTarget
