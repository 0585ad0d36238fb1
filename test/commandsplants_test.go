package test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	cloud "cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/test/plants"
	"github.com/tailrace-cdc/replicator/verify"
)

// planted is a table with a random mapping, and the difference that was planted into its target.
type planted struct {
	w     *world
	name  string
	rules []*plants.Rule
	rnd   *rand.Rand
	items map[string]*plants.Rule // that exist, by "partition sort"
	gone  map[string]*plants.Rule // that were deleted

	row  string // of the plant
	want string // what a comparison must name
}

// live writes a random history: puts, deletes, and an item that expires.
func (p *planted) live() {
	for range 30 {
		r := p.rules[p.rnd.IntN(len(p.rules))]
		pk, sk := fmt.Sprint("p", p.rnd.IntN(2)), fmt.Sprint(r.Prefix, p.rnd.IntN(4))
		key := pk + " " + sk
		if p.items[key] != nil && p.rnd.IntN(3) == 0 {
			p.w.Delete(p.name, pk, sk)
			delete(p.items, key)
			p.gone[key] = r
			continue
		}
		p.w.Put(p.name, pk, sk, p.body())
		p.items[key] = r
		delete(p.gone, key)
	}
	expires := fmt.Sprintf(`"x":{"S":"1"},"expires":{"N":"%d"}`, p.w.Clock.Now().Unix())
	p.w.Put(p.name, "p0", p.rules[0].Prefix+"expired", expires)
}

func (p *planted) body() string {
	all := []string{fmt.Sprintf(`"x":{"S":"%d"}`, p.rnd.IntN(100))}
	for _, name := range []string{"y", "z", "h", "a", "site"} {
		if p.rnd.IntN(2) == 0 {
			all = append(all, fmt.Sprintf(`%q:{"S":"%d"}`, name, p.rnd.IntN(9)))
		}
	}
	return strings.Join(all, ",")
}

// shown is a cell that an item must have.
type shown struct{ item, row, family, column, value string }

// cells lists the cells that the items of the table must have and that do not age.
func (p *planted) cells(s *sides) (all []shown) {
	p.w.t.Helper()
	program := s.compile(p.name)
	err := s.items(p.w.t.Context(), p.name, func(img change.Image) error {
		rows, err := program.Project(img)
		for i := range rows {
			for _, c := range rows[i].Cells {
				if c.Family != "a" {
					all = append(all, shown{item: img.Get("pk").S + " " + img.Get("sk").S, row: string(rows[i].Key),
						family: c.Family, column: string(c.Qualifier), value: string(c.Value)})
				}
			}
		}
		return err
	})
	if err != nil {
		p.w.t.Fatal(err)
	}
	return all
}

// newest returns the newest cell of each column of all targets. What a mapping keeps of removed
// items is among them, which no projection of items shows.
func (s *sides) newest(all []*planted) (cells []string) {
	s.w.t.Helper()
	for _, p := range all {
		views := slices.Clone(verify.Views(s.compile(p.name)))
		for i := range views {
			views[i].Versions = 1
		}
		err := s.sink.Rows(s.w.t.Context(), target(p.name), "", "", views, func(r *bigtable.Row) error {
			for _, c := range r.Cells {
				cells = append(cells, fmt.Sprintf("%s %s %s:%s = %q", p.name, r.Key, c.Family, c.Qualifier, c.Value))
			}
			return nil
		})
		if err != nil {
			s.w.t.Fatal(err)
		}
	}
	slices.Sort(cells)
	return cells
}

// plant plants a difference: a cell less, another value, a cell in the row of a removed item, or a
// foreign row. Where no item of the table was removed from a row of its own, the third kind is a
// foreign row.
func (p *planted) plant(s *sides, kind int) {
	p.w.t.Helper()
	all := p.cells(s)
	if kind < 2 && len(all) > 0 {
		c := all[p.rnd.IntN(len(all))]
		p.row, p.want = c.row, p.name+" "+c.item
		p.w.plant(p.name, c.row, func(m *cloud.Mutation) {
			if kind == 0 {
				m.DeleteCellsInColumn(c.family, c.column)
				return
			}
			m.Set(c.family, c.column, cloud.Time(p.w.Clock.Now().Add(time.Second)), []byte(c.value+"?"))
		})
		return
	}
	p.row, p.want = "zz", "zz d:x"
	if kind == 2 {
		for _, key := range slices.Sorted(maps.Keys(p.gone)) {
			if r := p.gone[key]; r.Own && !r.Keep {
				pk, sk, _ := strings.Cut(key, " ")
				p.row = p.rowOf(s, pk, sk)
				p.want = p.name + " " + key
				break
			}
		}
	}
	p.w.plant(p.name, p.row, setCell("x", "planted"))
}

// rowOf returns the row of its own that an item has by its key.
func (p *planted) rowOf(s *sides, pk, sk string) string {
	p.w.t.Helper()
	img, err := new(change.Decoder).Image(fmt.Appendf(nil, `{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk))
	if err != nil {
		p.w.t.Fatal(err)
	}
	rows, err := s.compile(p.name).Project(img)
	if err != nil || len(rows) == 0 {
		p.w.t.Fatal("no row: ", err)
	}
	return string(rows[0].Key)
}

// each runs a command for each table, six at a time, and expects the same exit code of all.
func (d *daemon) each(all []*planted, code int, args func(*planted) []string) {
	d.w.t.Helper()
	for some := range slices.Chunk(all, 6) {
		d.sideBySide(some, code, args)
	}
}

func (d *daemon) sideBySide(all []*planted, code int, args func(*planted) []string) {
	d.w.t.Helper()
	type running struct {
		out, errs *output
		ended     <-chan struct{}
		code      func() int
	}
	var begun []running
	for _, p := range all {
		var r running
		r.out, r.errs, r.ended, r.code = d.w.background(args(p)...)
		begun = append(begun, r)
	}
	for i, r := range begun {
		what := strings.Join(args(all[i]), " ")
		d.hastenUntil("the command ends: "+what, r.ended)
		if r.code() != code {
			d.w.t.Errorf("%s: exit %d, want %d: %s%s", what, r.code(), code, r.out, r.errs)
		}
	}
}

// TestPlantsThroughTheCommands plants one difference into each of twenty targets of random
// mappings, after random histories: verify names each and nothing else, explain says that each row
// differs, repair mends all, and so does a resync of whole tables. At the end the newest cell of
// each column is what it was before.
func TestPlantsThroughTheCommands(t *testing.T) {
	long(t, "40 s")
	const seed = 2900
	w := newWorld(t, seed)
	w.tables, w.secret, w.idlePoll = nil, plants.Secret, "250ms" // of 80 shards
	w.testing = strings.NewReplacer("beat: 100ms", "beat: 500ms", "listing: 500ms", "listing: 1s",
		"claim_ttl: 2s", "claim_ttl: 30s", // else commands take the owner on a busy machine for dead
	).Replace(periods("300ms"))
	var all []*planted
	var names []string
	for i := range uint64(20) {
		p := &planted{w: w, name: fmt.Sprintf("T%02d", i), rnd: rand.New(rand.NewPCG(seed, i)),
			items: map[string]*plants.Rule{}, gone: map[string]*plants.Rule{}}
		if i == 0 {
			p.name = "Orders"
		}
		var text string
		text, p.rules = plants.Mapping(seed + i)
		w.write(target(p.name)+".yaml", text)
		w.tables = append(w.tables, fmt.Sprintf("{source: %s, target: %s, mapping: %s.yaml, backfill: none}", p.name,
			target(p.name), target(p.name)))
		all, names = append(all, p), append(names, p.name)
	}
	w.prepare(names...)
	for _, p := range all {
		p.live()
	}
	d := w.run()
	d.settle(names...)
	w.DynamoDB.ExpireNow(w.Clock.Now())
	d.settle(names...)
	s := w.openPair()
	before := s.newest(all)
	compared := func(into string) func(*planted) []string {
		return func(p *planted) []string {
			return []string{"verify", "--table", p.name, "--differences", p.name + into}
		}
	}
	d.each(all, 0, compared("-none.jsonl"))

	explained := func(p *planted) []string { return []string{"explain", "--table", p.name, "--row", p.row} }
	repaired := func(p *planted) []string {
		return []string{"repair", "--from", p.name + "-planted0.jsonl", "--delete-foreign", "--yes"}
	}
	resynced := func(p *planted) []string { return []string{"resync", "--table", p.name, "--wait"} }
	for round, mend := range []func(){
		func() { d.each(all, 4, explained); d.each(all, 0, repaired) },
		func() { d.each(all, 0, resynced) },
	} {
		for i, p := range all {
			p.plant(s, (i+round)%(4-2*round)) // a resync deletes no foreign rows
		}
		planted := fmt.Sprintf("-planted%d.jsonl", round)
		d.each(all, 4, compared(planted))
		for _, p := range all {
			found := slices.Collect(maps.Keys(w.named(p.name + planted)))
			if diff := cmp.Diff([]string{p.want}, found); diff != "" {
				t.Errorf("round %d, %s (-want +got):\n%s", round, p.name, diff)
			}
		}
		w.Clock.Advance(2 * time.Minute) // nothing that was planted is hot any more
		d.settle(names...)
		mend()
		d.each(all, 0, compared(fmt.Sprintf("-mended%d.jsonl", round)))
	}
	d.checkClean()
	if diff := cmp.Diff(before, s.newest(all)); diff != "" {
		t.Errorf("mending has left other cells than there were (-before +after):\n%s", diff)
	}
}
