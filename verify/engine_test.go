package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/test/oracle"
	"github.com/tailrace-cdc/replicator/transform"
)

// engine runs the whole of a resync over a world.
type engine struct {
	*world
	mu       sync.Mutex
	dir      string
	parts    int
	perPage  int
	pages    int // that were read
	proofs   int // that were asked for
	reads    map[string]int
	repaired []Repair // that were asked for
	progress []Resynced
	outlives func(transform.CellAlone) transform.Remaining

	filled [][]*source.ItemPage // by part, where pages are made in advance

	beforePage  func(part int, after string) error
	beforeProof func()
	tables      []Table // further ones
}

func newEngine(t testing.TB, mapping string) *engine {
	return &engine{world: newWorld(t, mapping), dir: filepath.Join(t.TempDir(), "scratch"), parts: 3, perPage: 7,
		reads: map[string]int{}}
}

func (e *engine) now() change.Millis { return change.Millis(e.version) + 60_000 }

// page reads the items of a part: those whose key's hash gives it, in the order of keys.
func (e *engine) page(_ context.Context, part int, after string) (*source.ItemPage, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.beforePage != nil {
		if err := e.beforePage(part, after); err != nil {
			return nil, err
		}
	}
	e.pages++
	if e.filled != nil {
		n := 0
		_, _ = fmt.Sscan(after, &n) // "" is the first page
		return e.filled[part][n], nil
	}
	p := &source.ItemPage{Requested: e.now(), Answered: e.now(), Done: true}
	for _, key := range slices.Sorted(maps.Keys(e.items)) {
		if int(change.HashKey([]byte(key))%uint64(e.parts)) != part || key <= after {
			continue
		}
		if len(p.Items) == e.perPage {
			p.Done = false
			break
		}
		p.Items, p.After = append(p.Items, []byte(e.items[key])), key
	}
	if p.Done {
		p.After = ""
	}
	return p, nil
}

// fillPages makes all pages in advance, so that a benchmark does not measure their making.
func (e *engine) fillPages() {
	filled := make([][]*source.ItemPage, e.parts)
	for part := range filled {
		for after, done := "", false; !done; {
			p, err := e.page(e.t.Context(), part, after)
			if err != nil {
				e.t.Fatal(err)
			}
			after, done = p.After, p.Done
			if filled[part] = append(filled[part], p); !done {
				p.After = fmt.Sprint(len(filled[part]))
			}
		}
	}
	e.filled = filled
}

func (e *engine) readItems(_ context.Context, _ string, keys [][]byte) (*source.ItemBatch, error) {
	b := &source.ItemBatch{Requested: e.now(), Answered: e.now()}
	for _, k := range keys {
		e.reads[string(k)]++
		if item, ok := e.items[string(k)]; ok {
			b.Items = append(b.Items, []byte(item))
		} else {
			b.Items = append(b.Items, nil)
		}
	}
	return b, nil
}

func (e *engine) allTables() []Table {
	return append([]Table{{Program: e.program, Parts: e.parts, Page: e.page, Outlives: e.outlives}}, e.tables...)
}

func (e *engine) bigtable() *BigtableTarget {
	programs := []*transform.Program{e.program}
	for i := range e.tables {
		programs = append(programs, e.tables[i].Program)
	}
	return NewTarget(e.client, target, programs...)
}

func (e *engine) options() FullOptions {
	return FullOptions{Dir: e.dir, Identity: "test", Now: e.now, Lead: 3_600_000}
}

func (e *engine) full(o FullOptions) *Findings {
	e.t.Helper()
	f, err := Full(e.t.Context(), o, e.allTables(), e.bigtable())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = f.Close() })
	return f
}

func (e *engine) settler() Settler {
	return Settler{Tables: e.allTables(), Target: e.bigtable(), ReadItems: e.readItems,
		Prove: func(context.Context, change.Millis) error {
			e.proofs++
			if e.beforeProof != nil {
				e.beforeProof()
			}
			return nil
		},
		Now: e.now, Lead: 3_600_000, Pause: func(context.Context, time.Duration) error { return nil }}
}

// repair is what the daemon does in an item's lane.
func (e *engine) repair(ctx context.Context, repairs []Repair) ([]Repaired, error) {
	var out []Repaired
	for _, x := range repairs {
		e.repaired = append(e.repaired, x)
		r := transform.Resync{Keys: []byte(x.Key), Version: change.Version(e.now() - 30_000), Rows: x.Rows}
		if item, ok := e.items[x.Key]; ok {
			r.Item = []byte(item)
		}
		var d change.Decoder
		var w transform.Write
		read, err := e.program.RowsToRead(&d, &r)
		if err != nil {
			return nil, err
		}
		it := transform.Item{Table: "S", Key: []byte(x.Key), Guard: guardQualifier("p", "S", x.Key)}
		if r.Held, err = e.client.HeldRows(ctx, target, it, read); err != nil {
			return nil, err
		}
		if err := e.program.Resync(&d, &r, &w); err != nil {
			return nil, err
		}
		done, err := e.client.Resync(ctx, target, &w, nil)
		if err != nil {
			return nil, err
		}
		one := Repaired{Written: done.Written}
		for i := range w.Rows {
			if w.Rows[i].Left {
				one.Left++
			}
		}
		if done.Skipped > 0 {
			one.Hot = change.Millis(done.Hot) + 60_000
		}
		out = append(out, one)
	}
	return out, nil
}

// resync compares, settles and repairs.
func (e *engine) resync() *Resynced {
	e.t.Helper()
	f := e.full(e.options())
	r := Resyncer{Settler: e.settler(), Repair: e.repair, Batch: 5,
		Progress: func(r Resynced) { e.progress = append(e.progress, r) }}
	res, err := r.Run(e.t.Context(), f)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := f.Remove(); err != nil {
		e.t.Fatal(err)
	}
	if left, _ := os.ReadDir(e.dir); len(left) > 0 {
		e.t.Errorf("%d files are left in the scratch directory", len(left))
	}
	return res
}

// verdicts settles the candidates of a full comparison.
func (e *engine) verdicts(f *Findings) map[string]Verdict {
	e.t.Helper()
	out := map[string]Verdict{}
	s := e.settler()
	err := f.Candidates(1000, func(batch []Candidate) error {
		all, err := s.Settle(e.t.Context(), batch)
		for _, v := range all {
			out[v.Key] = v
		}
		return err
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

func keyOf(pk, sk string) string { return fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk) }

// lose changes an item in the source only, as in a gap. An empty rest removes it.
func (e *engine) lose(pk, sk, rest string) {
	if rest == "" {
		delete(e.items, keyOf(pk, sk))
		return
	}
	e.items[keyOf(pk, sk)] = fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q},%s}`, pk, sk, rest)
}

// candidates lists the findings as key → kinds.
func candidates(t testing.TB, f *Findings) map[string][]Kind {
	t.Helper()
	out := map[string][]Kind{}
	err := f.Candidates(2, func(batch []Candidate) error {
		for _, c := range batch {
			out[c.Key] = c.Kinds
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFullFindsNothingInEqualSidesWhateverTheMemory(t *testing.T) {
	for _, kind := range histories {
		e := newEngine(t, kind.mapping)
		for i := range 60 {
			e.put(fmt.Sprintf("p%d", i%7), kind.sorts[i%len(kind.sorts)],
				fmt.Sprintf(`"text":{"S":"t%d"},"x":{"S":"%d"},"y":{"S":"a longer text than sixteen bytes"}`, i%3, i))
			if i%11 == 3 {
				e.put(fmt.Sprintf("p%d", i%7), kind.sorts[i%len(kind.sorts)], "")
			}
		}
		for _, memory := range []int{1, 2000, 1 << 30} {
			o := e.options()
			o.Memory, o.Identity = memory, fmt.Sprint(memory)
			f := e.full(o)
			c := f.Counts
			if c.Items != int64(len(e.items)) || c.Rows != c.Equal || c.Rows == 0 || c.Cells == 0 || c.Candidates != 0 ||
				c.Foreign+c.Unproven+c.Kept != 0 || c.Began != e.now() {
				t.Errorf("%s, memory %d: %+v: %v", kind.name, memory, c, candidates(t, f))
			}
		}
	}
}

func TestEveryKindOfDamageIsACandidateWithItsItem(t *testing.T) {
	e := newEngine(t, "")
	for _, sk := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		e.put("p", sk, `"x":{"S":"1"},"y":{"S":"2"}`)
	}
	e.lose("p", "b", `"x":{"S":"other"},"y":{"S":"2"}`)
	e.lose("p", "c", "")
	e.lose("p", "new", `"x":{"S":"1"}`)
	e.foreign("p#d", "d", "x", "")
	e.foreign("p#e", "d", "ghost", "boo")
	e.foreign("nobody's", "d", "x", "9")
	e.guardAt("p#f", keyOf("p", "f"), int64(e.now())+7_200_000)
	e.unguard("p#g")
	want := map[string][]Kind{
		keyOf("p", "b"):   {Value},
		keyOf("p", "c"):   {Stale, ExtraCell},
		keyOf("p", "new"): {MissingRow},
		keyOf("p", "d"):   {Value},
		keyOf("p", "e"):   {Value},
		keyOf("p", "f"):   {FutureGuard},
		keyOf("p", "g"):   {NoGuard},
	}
	f := e.full(e.options())
	sorted := cmpopts.SortSlices(func(a, b Kind) bool { return a < b })
	if diff := cmp.Diff(want, candidates(t, f), sorted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f.Counts.Foreign != 1 || f.cells.First()[0].Kind != Foreign || string(f.cells.First()[0].Row) != "nobody's" {
		t.Errorf("%+v, %+v", f.Counts, f.cells.First())
	}
	for key, v := range e.verdicts(f) {
		if v.Status != Different {
			t.Errorf("%s is %+v", key, v)
		}
	}
}

// guardAt sets the guard of a row that belongs to one item.
func (w *world) guardAt(row, key string, version int64) {
	w.t.Helper()
	w.write(&transform.Write{Item: transform.Item{Guard: guardQualifier("p", "S", key), Table: "S", Pipeline: "p",
		Key: []byte(key)}, Version: change.Version(version),
		Rows: []transform.Row{{Key: []byte(row), Class: transform.ClassR}}})
}

func TestDamageIsRepairedAndSettlesEqual(t *testing.T) {
	for _, kind := range histories {
		e := newEngine(t, kind.mapping)
		for i := range 40 {
			e.put(fmt.Sprintf("p%d", i%7), kind.sorts[i%len(kind.sorts)],
				fmt.Sprintf(`"text":{"S":"t%d"},"x":{"S":"%d"},"y":{"S":"z"}`, i%3, i))
		}
		e.lose("p1", kind.sorts[0], "")
		e.lose("p2", kind.sorts[1], `"text":{"S":"t9"},"x":{"S":"lost"}`)
		e.lose("p9", kind.sorts[0], `"text":{"S":"t9"},"y":{"S":"new"}`)
		e.items[keyOf("p3", kind.sorts[0])] = `{"pk":{"S":"p3"},"sk":{"S":"` + kind.sorts[0] + `"},"text":{"S":"t7"}}`
		res := e.resync()
		healed, why := res.Healed(false)
		if !healed || res.Different == 0 || res.Repaired != res.Different || res.Equal != int64(len(e.items)) {
			t.Errorf("%s: %s, %+v", kind.name, why, res)
		}
		if p := e.progress; p[0].Settled == 0 || p[0].Different == 0 || p[0].Repaired != 0 ||
			p[len(p)-1].Repaired != res.Repaired || p[len(p)-1].Settled != res.Settled {
			t.Errorf("%s: what is known is not told before the repair: %+v", kind.name, p)
		}
		if again := e.resync(); again.Written != 0 || again.Different != 0 || again.Counts.Candidates != 0 {
			t.Errorf("%s: again: %+v", kind.name, again)
		}
		if c := e.compare(oracle.Options{}); !c.Equal() {
			t.Errorf("%s: cell by cell: %+v", kind.name, c)
		}
	}
}

// TestMissingRowsAreRepairedBeforeTheySettle: where most of a table is missing, each reading costs
// as much as a copy. An item that was removed after its page was read is not written.
func TestMissingRowsAreRepairedBeforeTheySettle(t *testing.T) {
	e := newEngine(t, "")
	e.put("p", "changed", `"x":{"S":"1"}`)
	e.lose("p", "changed", `"x":{"S":"2"}`)
	for i := range 12 {
		e.lose("p", fmt.Sprint("new", i), `"x":{"S":"1"}`)
	}
	f := e.full(e.options())
	e.lose("p", "new3", "")
	r := Resyncer{Settler: e.settler(), Repair: e.repair}
	res, err := r.Run(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if healed, why := res.Healed(false); !healed || res.Different != 13 || res.Repaired != 13 || res.Written != 12 {
		t.Errorf("%s, %+v", why, res)
	}
	for key, want := range map[string]int{"new3": 2, "new4": 2, "changed": 8} { // looks, settlings
		if n := e.reads[keyOf("p", key)]; n != want {
			t.Errorf("%s was read %d times, want %d", key, n, want)
		}
	}
	if c := e.compare(oracle.Options{}); !c.Equal() {
		t.Errorf("cell by cell: %+v", c)
	}
}

func TestRestartGoesOnWithTheRunsThatAreDone(t *testing.T) {
	e := newEngine(t, "")
	e.parts, e.perPage = 4, 5
	for i := range 100 {
		e.put(fmt.Sprintf("p%d", i), "a", `"x":{"S":"1"}`)
	}
	stop := errors.New("killed")
	e.beforePage = func(int, string) error {
		if e.pages == 10 {
			return stop
		}
		return nil
	}
	o := e.options()
	o.Readers, o.Memory = 1, 100 // a run for each page
	if _, err := Full(t.Context(), o, e.allTables(), e.bigtable()); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	e.beforePage = nil
	f := e.full(o)
	if c := f.Counts; c.Items != 100 || c.Equal != 100 || c.Candidates != 0 {
		t.Errorf("%+v", c)
	}
	whole := e.pages
	e.pages = 0
	o.Identity = "another one"
	e.full(o)
	if whole != e.pages {
		t.Errorf("%d pages with a restart, %d without", whole, e.pages)
	}
}

// TestRestartWithOtherPartsBeginsAnew: the table has shrunk, or its size is estimated anew, so that
// a part is no longer the part that was read. A row is missing.
func TestRestartWithOtherPartsBeginsAnew(t *testing.T) {
	e := newEngine(t, "")
	for i := range 100 {
		e.put(fmt.Sprintf("p%d", i), "a", `"x":{"S":"1"}`)
	}
	for i := range 10 {
		e.lose(fmt.Sprintf("new%d", i), "a", `"x":{"S":"1"}`)
	}
	stop := errors.New("killed")
	e.parts, e.beforePage = 8, func(part int, _ string) error {
		if part == 4 {
			return stop
		}
		return nil
	}
	o := e.options()
	o.Readers = 1
	if _, err := Full(t.Context(), o, e.allTables(), e.bigtable()); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	e.parts, e.beforePage = 6, nil
	f := e.full(o)
	if c := f.Counts; c.Items != 110 || c.Equal != 100 || len(candidates(t, f)) != 10 {
		t.Errorf("%+v", c)
	}
}

func TestDamagedRunCostsItsPartOnly(t *testing.T) {
	e := newEngine(t, "")
	for i := range 100 {
		e.put(fmt.Sprintf("p%d", i), "a", `"x":{"S":"1"}`)
	}
	if err := e.full(e.options()).Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(e.dir, runsFolder, "part-00001-*.run"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	read := map[int]bool{}
	e.beforePage = func(part int, _ string) error { read[part] = true; return nil }
	f := e.full(e.options())
	if c := f.Counts; c.Items != 100 || c.Equal != 100 || c.Candidates != 0 {
		t.Errorf("%+v", c)
	}
	if diff := cmp.Diff(map[int]bool{1: true}, read); diff != "" {
		t.Errorf("parts that were read again (-want +got):\n%s", diff)
	}
}

func TestRoomIsCheckedBeforeAnythingIsRead(t *testing.T) {
	e := newEngine(t, "")
	tables := e.allTables()
	tables[0].Items = 1 << 50
	_, err := Full(t.Context(), e.options(), tables, e.bigtable())
	if err == nil || e.pages > 0 {
		t.Fatalf("%d pages, %v", e.pages, err)
	}
	t.Log(err)
}

func TestResyncedInJSON(t *testing.T) {
	if _, err := json.Marshal(&Resynced{Open: []Open{{Kind: Foreign, Row: []byte{0xff}}}}); err != nil {
		t.Fatal(err)
	}
}

// guardQualifier is the qualifier of an item's guard in rows that it shares.
func guardQualifier(pipeline, table, key string) [16]byte {
	return guard.Qualifier(pipeline, table, []byte(key))
}
