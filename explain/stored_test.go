package explain

import (
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// TestCellsOfARefusedItemAreNotExtra: they are what the last change left that the mapping took.
func TestCellsOfARefusedItemAreNotExtra(t *testing.T) {
	for refused, want := range map[bool]string{false: CellExtra, true: CellOutdated} {
		x := &stored{refused: refused}
		if got := x.stateOf(guarded.IsExtra); got != want {
			t.Errorf("refused %t: %s, want %s", refused, got, want)
		}
		if got := x.stateOf(guarded.IsOlder); got != CellOlder {
			t.Errorf("refused %t: a hidden cell is %s", refused, got)
		}
	}
}

// TestRowLacksTheFirstRefusedChange that is newer than what the row holds. A letter of the archive
// takes nothing from a row, and a row that does not differ lacks nothing.
func TestRowLacksTheFirstRefusedChange(t *testing.T) {
	letters := []*deadletter.Letter{
		{ID: "archive", Sink: checkpoint.SinkArchive, Version: 11},
		{ID: "third", Sink: checkpoint.SinkBigtable, Version: 30},
		{ID: "second", Sink: checkpoint.SinkBigtable, Version: 20},
		{ID: "first", Sink: checkpoint.SinkBigtable, Version: 10},
	}
	for _, c := range []struct {
		row  StoredRow
		want string
	}{
		{StoredRow{Guard: 10, differs: true}, "second"},
		{StoredRow{differs: true}, "first"},
		{StoredRow{Guard: 10, Deleted: 20, differs: true}, "third"},
		{StoredRow{Guard: 30, differs: true}, ""},
		{StoredRow{Guard: 10}, ""},
	} {
		c.row.lacks(letters)
		got := ""
		if c.row.Refused != nil {
			got = c.row.Refused.Letter
		}
		if got != c.want {
			t.Errorf("a row at %d, deleted at %d: %q, want %q", c.row.Guard, c.row.Deleted, got, c.want)
		}
	}
}
