package bigtable

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/delegation"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
)

func orderOf(id string, revision int64) *delegation.Order {
	return &delegation.Order{
		Format: delegation.Format, Revision: revision, ID: id, Life: 3, Pipeline: "shop", Table: "Products",
		Export: delegation.Export{Files: 2001},
		// Longer than a filter may be.
		Mappings: []delegation.Mapping{{Table: "Products", Kept: []byte(`"` + strings.Repeat("x", 50_000) + `"`)}},
	}
}

// loadOrder loads the order of the table, which is there.
func loadOrder(t *testing.T, c *Client) *delegation.Seen {
	t.Helper()
	o, err := c.LoadOrder(t.Context(), "shop", "Products")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestOrderStandsBesideTheRow: it replaces exactly the value that was read, and what the row
// permits is read with it.
func TestOrderStandsBesideTheRow(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		ctx := t.Context()
		none := loadOrder(t, c)
		if none.Order != nil || none.Beat != nil || !none.Held {
			t.Errorf("without the row: %+v", none)
		}
		s := firstState()
		s.Life = 3
		if err := c.CreateState(ctx, s); err != nil {
			t.Fatal(err)
		}
		swap := func(old *delegation.Seen, next *delegation.Order, want bool) {
			t.Helper()
			if done, err := c.SwapOrder(ctx, "shop", "Products", old.Order, next); done != want || err != nil {
				t.Errorf("revision %d of order %s: %t, %v", next.Revision, next.ID, done, err)
			}
		}
		first := orderOf("o.1", 1)
		swap(none, first, true)
		swap(none, first, true) // its reply was lost
		swap(none, orderOf("o.2", 1), false)
		have := loadOrder(t, c)
		if diff := cmp.Diff(first, have.Order); diff != "" || have.Life != 3 || have.Held || have.Beat != nil {
			t.Errorf("life %d, held %t (-want +got):\n%s", have.Life, have.Held, diff)
		}
		closed := delegation.Closing(have.Order, "o.1", 3, delegation.CloseDone, 9)
		swap(have, closed, true)
		swap(have, orderOf("o.1", 2), false) // an opening that arrives late
		next := *s
		next.Fenced = &Fenced{ID: "f"}
		if err := c.CompareAndSet(ctx, s, &next); err != nil {
			t.Errorf("an order stands in the way of a change: %v", err)
		}
		if have = loadOrder(t, c); !have.Held || have.Order.Open() {
			t.Errorf("fenced: %+v", have)
		}
		recovering := next
		recovering.Fenced, recovering.Recovering = nil, true
		if err := c.CompareAndSet(ctx, &next, &recovering); err != nil {
			t.Fatal(err)
		}
		if !loadOrder(t, c).Held {
			t.Error("recovering, and not held")
		}
		if err := c.RemoveState(ctx, &recovering); err != nil {
			t.Fatal(err)
		}
		swap(have, orderOf("o.3", 9), false) // the row of a retired table does not come back
	})
}

// TestBeatsOfAnOrder stand only beside one, and none that arrives late hides a later one.
func TestBeatsOfAnOrder(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		ctx := t.Context()
		beat := func(date int, want bool) {
			t.Helper()
			b := delegation.Beat{Order: "o.1", Date: change.MillisOf(present) + change.Millis(date)}
			if there, err := c.StoreBeat(ctx, "shop", "Products", b, nil); there != want || err != nil {
				t.Fatalf("%t, %v", there, err)
			}
		}
		beat(1, false)
		old := errors.New("old")
		_, err := c.StoreBeat(ctx, "shop", "Products", delegation.Beat{}, func() error { return old })
		if !errors.Is(err, old) {
			t.Errorf("a beat that is too old: %v", err)
		}
		none := loadOrder(t, c)
		if _, err := c.SwapOrder(ctx, "shop", "Products", nil, orderOf("o.1", 1)); err != nil || none.Beat != nil {
			t.Fatal(none.Beat, err)
		}
		for _, date := range []int{5, 9, 2, 9} {
			beat(date, true)
		}
		if got := loadOrder(t, c).Beat; got == nil || got.Order != "o.1" || got.Date != change.MillisOf(present)+9 {
			t.Errorf("%+v", got)
		}
	})
}

// TestMarksOfFiles: each is of one order, they are read by rows, and no reader of state rows gets
// them.
func TestMarksOfFiles(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		ctx, o, other := t.Context(), orderOf("o.1", 1), orderOf("o.2", 1)
		store := func(o *delegation.Order, file int, m delegation.FileMark) {
			t.Helper()
			if err := c.StoreFileMark(ctx, o, file, m, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range []int{0, 999, 1000, 2000} {
			store(o, file, delegation.FileMark{Items: int64(file), HandedBack: []int64{7}})
		}
		store(o, 0, delegation.FileMark{Items: 5})
		store(other, 1, delegation.FileMark{})
		store(o, -5, delegation.FileMark{}) // no worker has such a file: it counts for none
		marks := func(o *delegation.Order) map[int]int64 {
			t.Helper()
			all := map[int]int64{}
			for row := range delegation.Rows(o.Export.Files) {
				err := c.LoadFileMarks(ctx, o, row, nil, func(file int, m *delegation.FileMark) error {
					all[file] = m.Items
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			return all
		}
		if diff := cmp.Diff(map[int]int64{0: 5, 999: 999, 1000: 1000, 2000: 2000}, marks(o)); diff != "" {
			t.Error(diff)
		}
		if m, err := c.FileMark(ctx, o, 999); err != nil || m == nil || !slices.Equal(m.HandedBack, []int64{7}) {
			t.Errorf("%+v, %v", m, err)
		}
		if m, err := c.FileMark(ctx, o, 1); m != nil || err != nil {
			t.Errorf("a mark of another order: %+v, %v", m, err)
		}
		stop := errors.New("stop")
		err := c.StoreFileMark(ctx, o, 3, delegation.FileMark{}, func() error { return stop })
		if m, _ := c.FileMark(ctx, o, 3); m != nil || !errors.Is(err, stop) {
			t.Errorf("without a lease: %v, %v", m, err)
		}
		err = c.LoadFileMarks(ctx, o, 0, nil, func(int, *delegation.FileMark) error { return stop })
		if !errors.Is(err, stop) {
			t.Error(err)
		}
		if err := c.States(ctx, func(s *State) error { return errors.New("a state row") }); err != nil {
			t.Error(err)
		}
		if err := c.RemoveFileMarks(ctx, o); err != nil {
			t.Fatal(err)
		}
		if left := marks(o); len(left) > 0 || !maps.Equal(marks(other), map[int]int64{1: 0}) {
			t.Errorf("%v are left, and %v of the other order", left, marks(other))
		}
	})
}

// TestOrderOfALaterBuildIsRefused (Rule 11), and so is what no row may hold.
func TestOrderOfALaterBuildIsRefused(t *testing.T) {
	c, _ := rig(t)
	for column, value := range map[string]string{orderQualifier: `{"format":2}`, beatQualifier: `{"format":2}`} {
		write := []op{{kind: opSet, family: tableschema.StateFamily, qualifier: []byte(column), value: []byte(value)}}
		r := &request{key: stateKey("shop", column), skip: write, body: write}
		var err error
		if r.filter, err = proto.Marshal(columnFilter(column)); err == nil {
			err = c.table(tableschema.StateTable).deliver(t.Context(), r, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.LoadOrder(t.Context(), "shop", column); !errors.As(err, new(*delegation.NewerFormatError)) {
			t.Errorf("%s: %v", column, err)
		}
	}
	large := orderOf("o.1", 1)
	large.Mappings[0].Kept = []byte(`"` + strings.Repeat("x", maxOrder) + `"`)
	if _, err := c.SwapOrder(t.Context(), "shop", "Orders", nil, large); err == nil {
		t.Error("an order of any size is stored")
	}
}
