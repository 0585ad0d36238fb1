package plants

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/test/oracle"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

var (
	worlds = flag.Uint64("plants.worlds", 200, "how many random mappings")
	each   = flag.Int("plants.each", 50, "how many plants in each")
	from   = flag.Uint64("plants.seed", 1, "the seed of the first world")
)

// TestEveryComparerNamesExactlyWhatWasPlanted: after a history every comparer finds both sides
// equal, whatever the mapping. After one planted difference every comparer names it and nothing
// else; after its repair they are equal.
func TestEveryComparerNamesExactlyWhatWasPlanted(t *testing.T) {
	n := *worlds
	if testing.Short() {
		n = min(n, 20)
	}
	kinds := map[string]int{}
	for seed := *from; seed < *from+n; seed++ {
		w, err := New(seed)
		if err != nil {
			t.Fatalf("%v\n%v", err, w)
		}
		if found := compareAll(t, w); len(found) > 0 {
			t.Fatalf("after the history: %q\n%v", found, w)
		}
		for i := range *each {
			p := w.Plant()
			if p == nil {
				continue
			}
			kind, _, _ := strings.Cut(p.What, ":")
			kinds[kind+verdictOf(p)]++
			check(t, w, i, p)
			if err := w.Mend(p); err != nil {
				t.Fatalf("plant %d, %s: mend: %v\n%v", i, p.What, err, w)
			}
			if found := compareAll(t, w); len(found) > 0 {
				t.Fatalf("plant %d, %s, after its repair: %q\n%v", i, p.What, found, w)
			}
		}
	}
	t.Logf("%d worlds from seed %d: %v", n, *from, kinds)
	if n >= 20 && (len(kinds) < 12 || kinds["a guard of a lost secret → "] == 0) {
		t.Errorf("only some kinds were planted: %v", kinds)
	}
}

func verdictOf(p *Plant) string {
	name, _, _ := strings.Cut(p.Name(), " ")
	return " → " + name
}

// check holds what every comparer finds against what the oracle expects.
func check(t *testing.T, w *World, i int, p *Plant) {
	t.Helper()
	var want []string
	if p.Name() != "" {
		want = []string{p.Name()}
	}
	if diff := cmp.Diff(want, byRow(t, w)); diff != "" {
		t.Fatalf("plant %d, %s: rows (-want +got):\n%s\n%v", i, p.What, diff, w)
	}
	if p.Item == nil {
		want = nil
	}
	if diff := cmp.Diff(want, byItem(t, w, p.Row)); diff != "" {
		t.Fatalf("plant %d, %s: items (-want +got):\n%s\n%v", i, p.What, diff, w)
	}
	if rows, ok := plainly(t, w); ok && !slices.Equal(rows, map[bool][]string{true: {p.Row}}[p.Visible]) {
		t.Fatalf("plant %d, %s: a plain comparison names the rows %q\n%v", i, p.What, rows, w)
	}
}

// compareAll returns what any comparer finds.
func compareAll(t *testing.T, w *World) []string {
	t.Helper()
	found := slices.Concat(byRow(t, w), byItem(t, w, ""))
	rows, _ := plainly(t, w)
	return append(found, rows...)
}

// finding collects what the comparison of rows finds.
type finding struct {
	candidates map[guarded.Item]verify.Candidate
	cells      []string
}

func (f *finding) Candidate(kind guarded.Kind, of guarded.Item, row []byte) error {
	c := f.candidates[of]
	c.Table, c.Key, c.Kinds, c.Rows = of.Table, of.Key, append(c.Kinds, kind), append(c.Rows, slices.Clone(row))
	f.candidates[of] = c
	return nil
}

func (f *finding) Kept([]byte, *guarded.Held) {}

func (f *finding) Foreign(row []byte, h *guarded.Held, _ string) error {
	f.cells = append(f.cells, "foreign "+CellName(string(row), h.Family, string(h.Qualifier)))
	return nil
}

func (f *finding) Unproven(kind guarded.Kind, row []byte, h *guarded.Held) error {
	f.cells = append(f.cells, string(kind)+" "+CellName(string(row), h.Family, string(h.Qualifier)))
	return nil
}

// byRow compares each row with all its items, and settles what may differ: the full comparison, and
// the continuous one.
func byRow(t *testing.T, w *World) []string {
	t.Helper()
	families := guarded.FamiliesOf(w.Tables)
	wanted := map[string][]guarded.Wanted{}
	for _, of := range w.existing() {
		p := guarded.NewProjector(families, &w.Tables[of.Table])
		rows, err := p.Rows([]byte(w.Items[of]))
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			x := guarded.Wanted{Item: of}
			if err := x.Decode(slices.Clone(p.Encode(&rows[i]))); err != nil {
				t.Fatal(err)
			}
			wanted[string(rows[i].Key)] = append(wanted[string(rows[i].Key)], x)
		}
	}
	f := &finding{candidates: map[guarded.Item]verify.Candidate{}}
	c := guarded.NewComparison(guarded.NewGuards(w, w.Tables), families, w.Now(), change.Version(w.Now()+Lead), f)
	err := w.Scan(t.Context(), func(row *verify.Row) error {
		items := wanted[string(row.Key)]
		delete(wanted, string(row.Key))
		return c.Compare(row.Key, items, row)
	})
	for row, items := range wanted {
		if err == nil {
			err = c.Compare([]byte(row), items, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []verify.Candidate
	for _, x := range f.candidates {
		all = append(all, x)
	}
	return append(settle(t, w, all), f.cells...)
}

// byItem settles every item that ever was, with all rows in which it may be: what is asked of one
// item.
func byItem(t *testing.T, w *World, row string) []string {
	t.Helper()
	var all []verify.Candidate
	for of, rows := range w.Known(row) {
		all = append(all, verify.Candidate{Table: of.Table, Key: of.Key, Rows: rows})
	}
	return settle(t, w, all)
}

// settle returns the items that are neither equal nor kept.
func settle(t *testing.T, w *World, all []verify.Candidate) (names []string) {
	t.Helper()
	verdicts, err := w.Settler().Settle(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range verdicts {
		v := &verdicts[i]
		switch v.Status {
		case verify.Equal, verify.Kept:
		case verify.Different:
			names = append(names, ItemName(guarded.Item{Table: v.Table, Key: v.Key}))
		default:
			names = append(names, fmt.Sprintf("%s %s %s", v.Status, v.Key, v.Why))
		}
	}
	slices.Sort(names)
	return names
}

// plainly compares what a reader without guards sees, and returns the rows that differ. It cannot
// where expired items are kept.
func plainly(t *testing.T, w *World) (rows []string, ok bool) {
	t.Helper()
	if slices.ContainsFunc(w.rules, func(r *Rule) bool { return r.Keep }) {
		return nil, false
	}
	var sources []oracle.Source
	for i := range w.Tables {
		sources = append(sources, oracle.Source{Program: w.Tables[i].Program, Schema: w.Tables[i].Program.Table().Schema,
			Items: func(_ context.Context, f func(change.Image) error) error {
				for _, of := range w.existing() {
					if of.Table != i {
						continue
					}
					img, err := new(change.Decoder).Image([]byte(w.Items[of]))
					if err == nil {
						err = f(img)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}})
	}
	res, err := oracle.Compare(t.Context(), oracle.Options{Now: w.Now().Time(), Outlive: []string{"h", "a"}}, sources,
		func(ctx context.Context, f func(*bigtable.Row) error) error {
			return w.Scan(ctx, func(r *verify.Row) error { return f(&bigtable.Row{Key: r.Key, Cells: r.Cells}) })
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range res.Differences {
		rows = append(rows, d.Row)
	}
	return slices.Compact(rows), true
}
