package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/cutover"
)

func TestGuardsThatWereLeftAreNamed(t *testing.T) {
	at := time.Now()
	for name, c := range map[string]struct {
		kept cutover.Kept
		want string
	}{
		"row": {cutover.Kept{Target: "shared", Row: true}, "The guards in shared stay; the same command"},
		"swept": {cutover.Kept{Target: "shared", Row: true, Guards: &cutover.Guards{Cells: 2, Rows: 1}},
			"2 cells in 1 row of shared"},
		"retired":    {cutover.Kept{Target: "shared", Retired: &at}, "may be left in shared (--drop-guards)"},
		"never kept": {cutover.Kept{Table: "T"}, "Nothing is kept of table T.\n"},
	} {
		var out strings.Builder
		if render.Kept(&out, &c.kept); !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: no %q in\n%s", name, c.want, out.String())
		}
	}
}
