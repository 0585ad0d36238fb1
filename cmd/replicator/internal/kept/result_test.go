package kept

import "testing"

// TestOnlyListedCellsAreAccepted: of more cells than the list takes, nobody knows whether all may be accepted.
func TestOnlyListedCellsAreAccepted(t *testing.T) {
	for cells, want := range map[int64]bool{0: true, maxCells - 1: true, maxCells: false, maxCells + 1: false} {
		if r := (&Result{OpenCells: cells}); r.CellsListed() != want {
			t.Errorf("%d cells: listed: %v", cells, !want)
		}
	}
}
