package explain

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/test/plants"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// TestExplainedRowsDifferWherePlanted: the comparison of one item with its rows names exactly the
// item that a planted difference belongs to, over random mappings and histories.
func TestExplainedRowsDifferWherePlanted(t *testing.T) {
	worlds := uint64(60)
	if testing.Short() {
		worlds = 6
	}
	planted := 0
	for seed := uint64(1); seed <= worlds; seed++ {
		w, err := plants.New(seed)
		if err != nil {
			t.Fatalf("%v\n%v", err, w)
		}
		if got := differing(t, w, ""); len(got) > 0 {
			t.Fatalf("after the history: %q\n%v", got, w)
		}
		for range 20 {
			p := w.Plant()
			if p == nil {
				continue
			}
			planted++
			var want []string
			if p.Item != nil {
				want = []string{plants.ItemName(*p.Item)}
			}
			if diff := cmp.Diff(want, differing(t, w, p.Row)); diff != "" {
				t.Fatalf("%s (-want +got):\n%s\n%v", p.What, diff, w)
			}
			if err := w.Mend(p); err != nil {
				t.Fatal(err)
			}
			if got := differing(t, w, p.Row); len(got) > 0 {
				t.Fatalf("%s, after its repair: %q\n%v", p.What, got, w)
			}
		}
	}
	if planted < 50 {
		t.Errorf("only %d plants", planted)
	}
}

// differing returns the items with a row that is not as it should be.
func differing(t *testing.T, w *plants.World, row string) (items []string) {
	t.Helper()
	families := guarded.FamiliesOf(w.Tables)
	for of, rows := range w.Known(row) {
		x := &stored{
			names: &names{data: true}, of: of, target: w, fams: families, guards: guarded.NewGuards(w, w.Tables),
			cells: guarded.NewCells(families), p: guarded.NewProjector(families, &w.Tables[of.Table]),
			wanted: map[string]*wantedRow{}, absent: true,
		}
		x.cells.Now, x.latest = w.Now(), change.Version(w.Now()+plants.Lead)
		keys := map[string]bool{}
		for _, r := range rows {
			keys[string(r)] = true
		}
		if item, here := w.Items[of]; here {
			if err := x.want([]byte(item)); err != nil {
				t.Fatal(err)
			}
		}
		var all []string
		for key := range keys {
			all = append(all, key)
		}
		found, err := x.read(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(found, func(r StoredRow) bool { return r.differs }) {
			items = append(items, plants.ItemName(of))
		}
	}
	slices.Sort(items)
	return items
}
