package bigtable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// heldText returns held rows as text: key, guards, cells.
func heldText(held []transform.HeldRow) (lines []string) {
	version := func(v change.Version) int64 {
		if v == 0 {
			return 0
		}
		return int64(v) - at(0)
	}
	for _, h := range held {
		line := fmt.Sprintf("%s live %d dead %d:", h.Key, version(h.Live), version(h.Dead))
		for _, cell := range h.Cells {
			line += fmt.Sprintf(" %s:%s@%d=%s", cell.Family, cell.Qualifier, cell.Time-at(0), cell.Value)
		}
		lines = append(lines, line)
	}
	return lines
}

// TestHeldRowsReadsOnlyWhatIsAskedFor is attack 73: a row of many items is read for one of them.
func TestHeldRowsReadsOnlyWhatIsAskedFor(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		history := share(transform.ClassD, "a", "row", 2, nil, "a/x", "2")
		history.Rows[0].Cells = append(history.Rows[0].Cells,
			transform.Cell{Family: "h", Qualifier: []byte("a"), Value: []byte("two")})
		last := share(transform.ClassD, "a", "row", 3, nil, "a/x", "3", "a/y", "3")
		last.Rows[0].Cells = append(last.Rows[0].Cells,
			transform.Cell{Family: "h", Qualifier: []byte("a"), Value: []byte("three")})
		mustApply(t, c, history, last, share(transform.ClassD, "b", "row", 1, nil, "b/x", "1", "b/y", "1"),
			share(transform.ClassD, "a", "left", 1, nil, "a/x", "1"),
			share(transform.ClassD, "a", "left", 2, []string{"a/x"}),
			own("own", 4, "x", "4"), share(transform.ClassK, "a", "others", 9, nil))
		mine := []transform.FamilyRead{
			{Family: "d", Versions: 1, Ranges: []transform.ColumnRange{{From: []byte("a/"), To: []byte("a0")}}},
			{Family: "h", Versions: 5},
		}
		rows := []transform.RowRead{
			{Key: []byte("row"), Class: transform.ClassD, Families: mine},
			{Key: []byte("absent"), Class: transform.ClassD, Families: mine},
			{Key: []byte("left"), Class: transform.ClassD, Families: mine},
			{Key: []byte("own"), Class: transform.ClassR},
			{Key: []byte("row"), Class: transform.ClassD, Families: mine[:1]},
		}
		held, err := c.HeldRows(t.Context(), target, item("a"), rows)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"row live 3 dead 0: d:a/x@3=3 d:a/y@3=3 h:a@3=three h:a@2=two",
			"absent live 0 dead 0:",
			"left live 0 dead 2:",
			"own live 4 dead 0:",
			"row live 3 dead 0: d:a/x@3=3 d:a/y@3=3",
		}
		if diff := cmp.Diff(want, heldText(held)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestReadOfHeldRowsWaitsAsACopy, and gives its slot back, also where it fails.
func TestReadOfHeldRowsWaitsAsACopy(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		l, rows := c.table(target).limit, []transform.RowRead{{Key: []byte("row"), Class: transform.ClassR}}
		taken := l.Load().Bound
		for range taken {
			if err := l.Acquire(t.Context(), ofStream); err != nil {
				t.Fatal(err)
			}
		}
		read := make(chan error, 1)
		go func() {
			_, err := c.HeldRows(t.Context(), target, item("a"), rows)
			read <- err
		}()
		for l.Load().Copying+l.Load().Waiting == 0 {
			<-time.After(time.Millisecond)
		}
		if now := l.Load(); now.Copying != 1 || now.InFlight != taken {
			t.Errorf("of %d slots %d are taken, %d copies wait", taken, now.InFlight, now.Copying)
		}
		for range taken {
			l.Return(ofStream)
		}
		if err := <-read; err != nil {
			t.Error(err)
		}
		l.unused(t)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.HeldRows(ended, target, item("a"), rows); err == nil {
			t.Error("rows were read in a context that has ended")
		}
		l.unused(t)
	})
}

func TestHeldRowsOfManyRowsAndRanges(t *testing.T) {
	c, _ := strict(t)
	const n = 250
	var rows []transform.RowRead
	families := []transform.FamilyRead{{Family: "d", Versions: 1}}
	for i := range n {
		name := strings.Repeat("long", 100) + fmt.Sprintf("%03d", i)
		families[0].Ranges = append(families[0].Ranges,
			transform.ColumnRange{From: []byte(name), To: []byte(name + "\x00")})
		mustApply(t, c, share(transform.ClassD, "a", fmt.Sprintf("row%03d", i), 1, nil, name, "1", "other", "1"))
		rows = append(rows, transform.RowRead{Key: fmt.Appendf(nil, "row%03d", n-1-i), Class: transform.ClassD})
	}
	for i := range rows {
		rows[i].Families = families
	}
	held, err := c.HeldRows(t.Context(), target, item("a"), rows)
	if err != nil || len(held) != n {
		t.Fatalf("%d rows, %v", len(held), err)
	}
	for i, h := range held {
		if string(h.Key) != string(rows[i].Key) || len(h.Cells) != 1 || h.Live == 0 {
			t.Errorf("%s: %d cells, live %d", h.Key, len(h.Cells), h.Live)
		}
	}
}

func TestGuardedRowsKeepGuardsApartFromCells(t *testing.T) {
	c, _ := rig(t, func(o *Options) { o.Pipeline = "shop" })
	mustApply(t, c, share(transform.ClassD, "a", "row", 2, nil, "x", "2"),
		share(transform.ClassD, "b", "row", 3, []string{"y"}), own("own", 4, "x", "4"), own("gone", 5),
		share(transform.ClassD, "a", "bare", 2, nil, "x", "2"), share(transform.ClassD, "a", "bare", 3, []string{"x"}))
	for name, read := range map[string]struct {
		GuardedRead
		want []string
	}{
		"live": {GuardedRead{}, []string{"own d=1 live=[own@4] dead=[]", "row d=1 live=[a@2] dead=[]"}},
		"dead": {GuardedRead{Dead: true}, []string{"bare d=0 live=[] dead=[a@3]", "gone d=0 live=[] dead=[gone@5]",
			"own d=1 live=[own@4] dead=[]", "row d=1 live=[a@2] dead=[b@3]"}},
		"range": {GuardedRead{Start: "o", End: "p"}, []string{"own d=1 live=[own@4] dead=[]"}},
		"keys": {GuardedRead{Keys: []string{"row", "absent", "gone"}, Dead: true},
			[]string{"gone d=0 live=[] dead=[gone@5]", "row d=1 live=[a@2] dead=[b@3]"}},
		"no keys": {GuardedRead{Keys: []string{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			pageSize(t, 2)
			read.Views = []View{{"d", 1}, {"h", 1}}
			var got []string
			err := c.GuardedRows(t.Context(), target, read.GuardedRead, func(r *GuardedRow) error {
				guards := func(cells []Cell) (all []string) {
					for _, cell := range cells {
						g, err := c.GuardOf(cell.Value, r.Key, cell.Qualifier)
						if err != nil || g.Pipeline != "shop" {
							t.Errorf("%s: %+v, %v", r.Key, g, err)
						}
						all = append(all, fmt.Sprintf("%s@%d", nameOf(g.Key), cell.Time.UnixMilli()-at(0)))
					}
					return all
				}
				got = append(got, fmt.Sprintf("%s d=%d live=%v dead=%v", r.Key, len(r.Cells), guards(r.Live), guards(r.Dead)))
				return nil
			})
			if diff := cmp.Diff(read.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	stop := errors.New("enough")
	if err := c.GuardedRows(t.Context(), target, GuardedRead{}, func(*GuardedRow) error { return stop }); !errors.Is(err,
		stop) {
		t.Errorf("an error of the callback: %v", err)
	}
}

// nameOf returns the name in the key of an item that the tests make.
func nameOf(key []byte) string {
	name := strings.TrimPrefix(string(key), `{"pk":{"S":"`)
	return strings.TrimSuffix(name, `"}}`)
}

func TestRowsNamingFindsEveryRowOfAnItem(t *testing.T) {
	c, f := rig(t, func(o *Options) { o.Pipeline = "shop" })
	other := open(t, f.addr, func(o *Options) { o.Pipeline, o.Seal = "shop", sealer(t, 1) })
	mustApply(t, c, share(transform.ClassD, "a", "one", 1, nil, "x", "1"),
		share(transform.ClassD, "a", "two", 1, nil, "x", "1"), share(transform.ClassD, "b", "two", 1, nil, "y", "1"),
		own("a", 1, "x", "1"), own("c", 1, "x", "1"), share(transform.ClassD, "a", "left", 2, []string{"x"}))
	if err := other.Apply(t.Context(), target, sealed(own("secret", 1, "x", "1"))); err != nil {
		t.Fatal(err)
	}
	foreign := own("foreign", 1, "x", "1")
	foreign.Item = item("a")
	foreign.Item.Pipeline = "other"
	mustApply(t, c, foreign)
	find := func(c *Client) (got []string, unknown int) {
		t.Helper()
		unknown, err := c.RowsNaming(t.Context(), target, []transform.Item{item("a"), item("b"), item("secret")},
			func(i int, row []byte) error {
				got = append(got, fmt.Sprintf("%d in %s", i, row))
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		return got, unknown
	}
	want := []string{"0 in a", "0 in one", "0 in two", "1 in two"}
	if got, unknown := find(c); !cmp.Equal(want, got) || unknown != 1 {
		t.Errorf("%v, %d unknown; want %v and the sealed one", got, unknown, want)
	}
	want = append(want, "2 in secret")
	if got, unknown := find(other); !cmp.Equal(want, got) || unknown != 0 {
		t.Errorf("with the secret: %v, %d unknown; want %v", got, unknown, want)
	}
}
