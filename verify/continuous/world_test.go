package continuous

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

var schema = change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'},
	Sort: &change.KeyAttr{Name: "sk", Type: 'S'}}

const sharedRows = `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{p}"
  cells: [{attrs: all, to: "d:{s}/{attr}"}]
`

// movingRows has rows that depend on an attribute.
const movingRows = `
mapping: 1
families: {d: {max_versions: 1}}
rules:
- name: any
  match: {pk: "{p}", sk: "{s}"}
  row: "{color}#{p}#{s}"
  cells: [{attrs: all, to: "d:{attr}"}]
`

func compile(t testing.TB, mapping string) *transform.Program {
	t.Helper()
	table := transform.Table{Pipeline: "p", Source: "S", Target: "target", Schema: schema, View: "NEW_AND_OLD_IMAGES"}
	if mapping != "" {
		m, problems := transform.ParseMapping("test.yaml", []byte(mapping))
		if m == nil {
			t.Fatalf("parse: %v", problems)
		}
		table.Mapping = m
	}
	p, problems := transform.Compile(table)
	if p == nil {
		t.Fatalf("compile: %v", problems)
	}
	return p
}

// world is a table and its target in memory, on the clock of a bubble.
type world struct {
	t       testing.TB
	program *transform.Program

	mu     sync.Mutex
	items  map[string]string                      // key → item
	rows   map[string]map[string][]transform.Cell // row → key of the owner, "" for nobody → cells
	order  []string                               // keys of items, sorted; nil: to be made
	units  float64                                // that were consumed
	calls  int                                    // scans
	hold   string
	lag    map[string]string // items as eventually consistent reads still see them
	proven func()            // is called by each proof
	guards time.Time         // their versions; zero: they are old
}

func newWorld(t testing.TB, mapping string) *world {
	return &world{t: t, program: compile(t, mapping), items: map[string]string{},
		rows: map[string]map[string][]transform.Cell{}, lag: map[string]string{}}
}

func keyOf(pk, sk string) string { return fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk) }

// put writes an item on both sides; without attributes it is removed.
func (w *world) put(pk, sk, attrs string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose(pk, sk, attrs)
	w.replicate(keyOf(pk, sk))
}

// lose writes an item in the source alone.
func (w *world) lose(pk, sk, attrs string) {
	w.order = nil
	if attrs == "" {
		delete(w.items, keyOf(pk, sk))
		return
	}
	w.items[keyOf(pk, sk)] = fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q},%s}`, pk, sk, attrs)
}

// replicate makes the rows of an item true.
func (w *world) replicate(key string) {
	w.t.Helper()
	for row, owners := range w.rows {
		if delete(owners, key); len(owners) == 0 {
			delete(w.rows, row)
		}
	}
	item, ok := w.items[key]
	if !ok {
		return
	}
	var d change.Decoder
	var write transform.Write
	c := change.Change{Op: change.Insert, Version: 1, Keys: []byte(key), New: []byte(item)}
	if err := w.program.Change(&d, &c, &write); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range write.Rows {
		var cells []transform.Cell
		for _, x := range r.Cells {
			cells = append(cells, transform.Cell{Family: x.Family, Qualifier: bytes.Clone(x.Qualifier),
				Value: bytes.Clone(x.Value)})
		}
		w.plant(string(r.Key), key, cells...)
	}
}

// plant adds cells to a row of the target with the guard of their owner, "" for nobody.
func (w *world) plant(row, owner string, cells ...transform.Cell) {
	if w.rows[row] == nil {
		w.rows[row] = map[string][]transform.Cell{}
	}
	w.rows[row][owner] = append(w.rows[row][owner], cells...)
}

func (w *world) row(key string) *verify.Row {
	at := time.UnixMilli(1)
	guard := at
	if !w.guards.IsZero() {
		guard = w.guards
	}
	r := &verify.Row{Key: []byte(key)}
	for _, owner := range slices.Sorted(maps.Keys(w.rows[key])) {
		for _, x := range w.rows[key][owner] {
			r.Cells = append(r.Cells, bigtable.Cell{Family: x.Family, Qualifier: x.Qualifier, Value: x.Value, Time: at})
		}
		if owner != "" {
			q := "i"
			if len(w.rows[key]) > 1 {
				q = owner
			}
			r.Live = append(r.Live, bigtable.Cell{Family: transform.LiveFamily, Qualifier: []byte(q), Value: []byte(owner),
				Time: guard})
		}
	}
	return r
}

func (w *world) ScanFrom(ctx context.Context, start string, f func(*verify.Row) error) error {
	w.mu.Lock()
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(w.rows)), func(key string) bool { return key < start })
	w.mu.Unlock()
	slices.Sort(keys)
	return w.Lookup(ctx, keys, f)
}

func (w *world) Scan(ctx context.Context, f func(*verify.Row) error) error {
	return w.ScanFrom(ctx, "", f)
}

func (w *world) Lookup(_ context.Context, keys []string, f func(*verify.Row) error) error {
	if !slices.IsSorted(keys) {
		w.t.Error("keys are not in order")
	}
	for _, key := range keys {
		w.mu.Lock()
		there, r := w.rows[key] != nil, w.row(key)
		w.mu.Unlock()
		if !there {
			continue
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) GuardOf(value, _, _ []byte) (bigtable.Guard, error) {
	return bigtable.Guard{Pipeline: "p", Table: "S", Key: value}, nil
}

// eventual returns an item as an eventually consistent read sees it. "-" in lag is an item that it
// does not see yet.
func (w *world) eventual(key string) (string, bool) {
	if old, lags := w.lag[key]; lags {
		return old, old != "-"
	}
	item, ok := w.items[key]
	return item, ok
}

func (w *world) ScanPage(_ context.Context, r source.ScanRequest) (*source.ItemPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !r.Eventual {
		w.t.Error("the scan is strongly consistent")
	}
	w.calls++
	if w.order == nil {
		w.order = slices.Sorted(maps.Keys(w.items))
	}
	p := &source.ItemPage{Done: true}
	size := 0
	from, found := slices.BinarySearch(w.order, r.After)
	if found {
		from++
	}
	for _, key := range w.order[from:] {
		if int(change.HashKey([]byte(key))%uint64(r.Total)) != r.Segment {
			continue
		}
		if r.Limit > 0 && len(p.Items) == r.Limit {
			p.Done = false
			break
		}
		p.After = key
		if item, ok := w.eventual(key); ok {
			p.Items, size = append(p.Items, []byte(item)), size+len(item)
		}
	}
	if p.Done {
		p.After = ""
	}
	p.Units = 0.5 * float64(size/4096+1)
	w.units += p.Units
	return p, nil
}

func (w *world) ReadItems(_ context.Context, _ string, keys [][]byte) (*source.ItemBatch, error) {
	return w.read(keys, 1, func(key string) (string, bool) { item, ok := w.items[key]; return item, ok })
}

func (w *world) ReadItemsEventually(_ context.Context, _ string, keys [][]byte) (*source.ItemBatch, error) {
	return w.read(keys, 0.5, w.eventual)
}

func (w *world) read(keys [][]byte, each float64, get func(string) (string, bool)) (*source.ItemBatch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := &source.ItemBatch{Units: each * float64(len(keys)), Answered: change.MillisOf(time.Now())}
	w.units += b.Units
	for _, k := range keys {
		if item, ok := get(string(k)); ok {
			b.Items = append(b.Items, []byte(item))
		} else {
			b.Items = append(b.Items, nil)
		}
	}
	return b, nil
}

// options are those of a verifier of the world, with so many units a second.
func (w *world) options(units float64) Options {
	return Options{
		Tables: []verify.Table{{Program: w.program, Parts: 1, Outlives: w.program.Outlives, Items: int64(len(w.items))}},
		Source: w, Target: w, Budget: source.NewBudget(units), Segments: 3,
		Lead: func() change.Millis { return 3_600_000 },
		Prove: func(ctx context.Context, _ change.Millis) error {
			w.mu.Lock()
			proven := w.proven
			w.mu.Unlock()
			if proven != nil {
				proven()
			}
			return failure.Pause(ctx, 6*time.Second)
		},
		Now: func() change.Millis { return change.MillisOf(time.Now()) },
		Hold: func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.hold
		},
	}
}

// runs runs a verifier until stop.
func (w *world) runs(v *Verifier) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error)
	go func() { ended <- v.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "canceled") {
			w.t.Errorf("Run: %v", err)
		}
	}
}

// pass lets time pass, in a bubble.
func (w *world) pass(d time.Duration) { _ = failure.Pause(w.t.Context(), d) }

// cycles waits until so many further cycles are finished, and what they saw is settled.
func (w *world) cycles(v *Verifier, n int64) {
	items, rows := v.Status().Items.Passes+n, v.Status().Rows.Passes+n
	for s := v.Status(); s.Items.Passes < items || s.Rows.Passes < rows; s = v.Status() {
		w.pass(time.Second)
	}
	w.pass(time.Minute) // what was seen last is settled, and looked at again
}
