package bigtable

import (
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	sandbox "github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/transform"
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

// The emulator names about one key in a hundred, and the last one: parts end between calls and
// within them.
func TestRowsGivesEachRowOnceAcrossParts(t *testing.T) {
	c, _ := rig(t)
	const n = 1200
	for i := range n {
		mustApply(t, c, own(fmt.Sprintf("row%04d", i), 1, "x", "1"))
	}
	for _, size := range []int{1, 40, 500} {
		pageSize(t, size)
		for _, r := range [][2]int{{0, n}, {17, 1100}, {n - 3, n}} {
			end := fmt.Sprintf("row%04d", r[1])
			if r[1] == n {
				end = ""
			}
			next := r[0]
			err := c.Rows(t.Context(), target, fmt.Sprintf("row%04d", r[0]), end, []View{{"d", 1}}, func(row *Row) error {
				if want := fmt.Sprintf("row%04d", next); string(row.Key) != want {
					return fmt.Errorf("%s in place of %s", row.Key, want)
				}
				next++
				return nil
			})
			if err != nil || next != r[1] {
				t.Errorf("%d rows a call, %v: ended before %d: %v", size, r, next, err)
			}
		}
	}
}

func TestPartsFollowTheNumberOfTheirRows(t *testing.T) {
	p := &parts{keys: []string{"b", "d", "f", "h", "j", "l"}, step: 1}
	for _, s := range []struct {
		n          int // rows of the part before
		start, end string
		want       string
	}{
		{n: rowsPerRead / 2, start: "", want: "b"},
		{n: rowsPerRead / 2, start: "b", want: "d"}, // a key begins the part behind it
		{n: 10, start: "d", want: "h"},
		{n: 10, start: "h", want: ""},
		{n: rowsPerRead, start: "a", want: "d"},
		{n: rowsPerRead, start: "a", want: "b"},
		{n: rowsPerRead, start: "a", want: "b"},
		{n: rowsPerRead - 1, start: "a", end: "aa", want: "aa"},
		{n: rowsPerRead - 1, start: "l", want: ""},
	} {
		if p.adapt(s.n); p.after(s.start, s.end) != s.want {
			t.Errorf("%+v: %q", s, p.after(s.start, s.end))
		}
	}
	if got := (*parts)(nil).after("a", "z"); got != "z" {
		t.Errorf("no parts: %q", got)
	}
}

func pageSize(t *testing.T, n int) {
	t.Helper()
	was := rowsPerRead
	rowsPerRead = n
	t.Cleanup(func() { rowsPerRead = was })
}

// TestWhatTakesAShareOfTheNodesIsCounted: every attempt of a write, and the rows that are read.
func TestWhatTakesAShareOfTheNodesIsCounted(t *testing.T) {
	c, f := strict(t)
	for i := range 3 {
		if err := c.Apply(t.Context(), target, own(fmt.Sprint("row", i), 1, "x", "1")); err != nil {
			t.Fatal(err)
		}
	}
	f.Faults.Next(sandbox.Refuse, 1)
	if err := c.Apply(t.Context(), target, own("row0", 2, "x", "2")); err != nil {
		t.Fatal(err)
	}
	if err := c.Rows(t.Context(), target, "", "", []View{{"d", 1}}, func(*Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	rows := []transform.RowRead{
		{Key: []byte("row0"), Class: transform.ClassR}, {Key: []byte("none"), Class: transform.ClassR},
	}
	if _, err := c.HeldRows(t.Context(), target, item("row0"), rows); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Usage(target), (Usage{Writes: 5, RowsRead: 5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := testutil.ToFloat64(c.metrics.rowsRead.WithLabelValues(target)); got != 5 {
		t.Errorf("tailrace_bigtable_rows_read_total is %v", got)
	}
	if got := c.Usage("other"); got != (Usage{}) {
		t.Errorf("another table: %+v", got)
	}
}
