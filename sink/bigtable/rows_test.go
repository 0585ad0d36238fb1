package bigtable

import (
	"errors"
	"fmt"
	"testing"
)

func TestRowsGivesEachRowOnceAcrossCalls(t *testing.T) {
	c, _ := rig(t)
	const n = 25
	for i := range n {
		mustApply(t, c, own(fmt.Sprintf("row%02d", i), 1, "x", "1"))
	}
	mustApply(t, c, own("row03", 2)) // a tombstone is no row
	var keys []string
	views := []View{{"d", 1}, {"h", 1}}
	pageSize(t, 7)
	err := c.Rows(t.Context(), target, "row01", "row24", views, func(r *Row) error {
		keys = append(keys, string(r.Key))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 22 || keys[0] != "row01" || keys[2] != "row04" || keys[21] != "row23" {
		t.Errorf("got %d rows: %v", len(keys), keys)
	}
	stop := errors.New("enough")
	if err := c.Rows(t.Context(), target, "", "", views, func(*Row) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("rows: %v", err)
	}
}

func pageSize(t *testing.T, n int) {
	t.Helper()
	was := rowsPerRead
	rowsPerRead = n
	t.Cleanup(func() { rowsPerRead = was })
}
