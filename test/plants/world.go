package plants

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/test/sim/cells"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

// World is a source with its target in memory.
type World struct {
	Seed     uint64
	Mappings []string
	Tables   []verify.Table
	Bigtable *cells.Table
	Items    map[guarded.Item]string              // that exist
	Ever     map[guarded.Item]map[string]bool     // the rows that each item was ever in
	columns  map[column]map[guarded.Item]struct{} // the items that ever had each column
	rules    []*Rule
	families []string
	versions map[string]int
	rnd      *rand.Rand
	beside   func(*transform.Write) error // nil: the table in memory is the only target
	now      int64
	lost     map[guarded.Item]bool // items whose changes a gap has swallowed
	expired  map[guarded.Item]bool // items that are kept in columns that their keys do not give
}

// column is a column of a row.
type column struct{ row, family, qualifier string }

const (
	hour  = int64(time.Hour / time.Millisecond)
	began = 1_700_000_000_000
	// Lead is how far above the clock versions may be.
	Lead = change.Millis(time.Hour / time.Millisecond)
)

// New makes the world of a seed: mappings that compile, and what the sink has applied of a history.
func New(seed uint64) (*World, error) {
	w := draft(seed, began)
	return w, w.live()
}

// NewAt is New for a history that begins at a time, in ms. target is called with the world before
// its history begins, and the function that it returns with each write, beside the table in memory.
func NewAt(seed uint64, at int64, target func(*World) func(*transform.Write) error) (*World, error) {
	w := draft(seed, at)
	w.beside = target(w)
	return w, w.live()
}

// draft draws the mappings of a world.
func draft(seed uint64, at int64) *World {
	w := &World{Seed: seed, Bigtable: cells.New(), Items: map[guarded.Item]string{}, rnd: rand.New(rand.NewPCG(seed, 29)),
		Ever: map[guarded.Item]map[string]bool{}, columns: map[column]map[guarded.Item]struct{}{}, now: at,
		versions: map[string]int{}, lost: map[guarded.Item]bool{},
		expired: map[guarded.Item]bool{}}
	for {
		tables, removed := 1+w.rnd.IntN(2), []string{"delete", "keep", "empty"}[w.rnd.IntN(3)]
		w.rules = nil
		for t := range tables {
			w.rules = append(w.rules, draw(w.rnd, t, removed)...)
		}
		texts, programs := compile(w.rules, tables, removed)
		if programs == nil {
			continue
		}
		w.Mappings = texts
		for _, p := range programs {
			w.Tables = append(w.Tables, verify.Table{Program: p, Parts: 1, Outlives: p.Outlives})
			for _, f := range p.Families() {
				if w.versions[f.Name] = f.MaxVersions; !slices.Contains(w.families, f.Name) {
					w.families = append(w.families, f.Name)
				}
			}
		}
		return w
	}
}

// String describes the world for a failure.
func (w *World) String() string {
	return fmt.Sprintf("seed %d\n%s", w.Seed, strings.Join(w.Mappings, "---\n"))
}

// Now is the service's clock.
func (w *World) Now() change.Millis { return change.Millis(w.now) }

// live runs the history, and heals what a gap has swallowed.
func (w *World) live() error {
	for range 20 + w.rnd.IntN(30) {
		w.now += 1 + w.rnd.Int64N(20_000)
		if chance(w.rnd, 20) {
			w.now += 2 * hour
		}
		if err := w.step(); err != nil {
			return err
		}
	}
	w.now += 120_000
	for of := range w.lost {
		if err := w.Repair(of, w.rowsEver(of), 0); err != nil {
			return err
		}
	}
	w.now += 120_000
	w.retire()
	return nil
}

// retire adds a guard of a table that is not compared to some of the rows that items share.
func (w *World) retire() {
	i := 0
	for _, row := range slices.Sorted(maps.Keys(w.Bigtable.Rows)) {
		if !strings.HasPrefix(row, "sh#") {
			continue
		}
		key := []byte(`{"pk":{"S":"z` + string(rune('0'+w.rnd.IntN(8))) + `"}}`)
		q := guard.Qualifier("p", "Z", key)
		if chance(w.rnd, 3) {
			w.set(row, cells.Cell{Family: []string{transform.LiveFamily, transform.DeadFamily}[i%2], Qualifier: string(q[:]),
				At: int64(change.Millis(w.now - 1)), Value: string(guard.Append(nil, "p", "Z", key))})
		}
		i++
	}
}

func (w *World) keyOf(r *Rule) guarded.Item {
	key := fmt.Sprintf(`{"pk":{"S":"p%d"},"sk":{"S":"%s%d"}}`, w.rnd.IntN(2), r.Prefix, w.rnd.IntN(3))
	return guarded.Item{Table: r.Table, Key: key}
}

// ruleOf returns the rule that takes an item.
func (w *World) ruleOf(of guarded.Item) *Rule {
	for _, r := range w.rules {
		if r.Table == of.Table && strings.Contains(of.Key, `"sk":{"S":"`+r.Prefix) {
			return r
		}
	}
	return nil
}

// body draws the attributes of an item beside its key.
func (w *World) body() string {
	out := ""
	for _, name := range []string{"x", "y", "z", "h", "a"} {
		switch w.rnd.IntN(3) {
		case 0:
			out += fmt.Sprintf(`,%q:{"S":"%d"}`, name, w.rnd.IntN(100))
		case 1:
			out += fmt.Sprintf(`,%q:{"N":"%d"}`, name, w.rnd.IntN(100))
		}
	}
	if chance(w.rnd, 2) {
		out += fmt.Sprintf(`,"site":{"S":"%c"}`, 'A'+rune(w.rnd.IntN(2)))
	}
	return out
}

// step makes one change: a put or an update, a removal, or a removal by TTL. A gap swallows some.
func (w *World) step() error {
	of := w.keyOf(w.rules[w.rnd.IntN(len(w.rules))])
	c := &change.Change{Op: change.Insert, Version: change.Version(w.now), Created: change.Millis(w.now),
		Keys: []byte(of.Key)}
	if old, here := w.Items[of]; here {
		c.Op, c.Old = change.Modify, []byte(old)
	}
	if w.expired[of] && c.Old == nil {
		return nil // what it left cannot be cleared when it is put again, of which the compiler warns
	}
	gap := chance(w.rnd, 8) && w.mayLose(of)
	if c.Old != nil && chance(w.rnd, 3) {
		c.Op, c.TTL = change.Remove, chance(w.rnd, 2)
		gap = gap && !c.TTL
		delete(w.Items, of)
		r := w.ruleOf(of)
		w.expired[of] = c.TTL && r.Keep && (!r.Own && (r.Typed || r.Wild) || r.History && r.Removed == "empty")
	} else {
		item := strings.TrimSuffix(of.Key, "}") + w.body() + "}"
		c.New, w.Items[of] = []byte(item), item
	}
	if err := w.note(of, c); err != nil || gap {
		w.lost[of] = true
		return err
	}
	var write transform.Write
	if err := w.program(of).Change(new(change.Decoder), c, &write); err != nil {
		return fmt.Errorf("change: %w", err)
	}
	return w.apply(&write)
}

// mayLose reports whether a gap can be healed that swallows a change of an item: a column without
// an inverse keeps its ghost, and the removal of an item that is kept after its expiry cannot be
// told from an expiry.
func (w *World) mayLose(of guarded.Item) bool {
	r := w.ruleOf(of)
	return !r.Typed && !r.Keep && !slices.ContainsFunc(w.rules, func(x *Rule) bool { return x.Typed })
}

func (w *World) program(of guarded.Item) *transform.Program { return w.Tables[of.Table].Program }

// note remembers the rows and columns that an item has by the images of a change.
func (w *World) note(of guarded.Item, c *change.Change) error {
	if w.Ever[of] == nil {
		w.Ever[of] = map[string]bool{}
	}
	if c.New == nil {
		return nil
	}
	rows, err := w.project(of, string(c.New))
	if err != nil {
		return err
	}
	for i := range rows {
		w.Ever[of][string(rows[i].Key)] = true
		for _, x := range rows[i].Cells {
			at := column{string(rows[i].Key), x.Family, string(x.Qualifier)}
			if w.columns[at] == nil {
				w.columns[at] = map[guarded.Item]struct{}{}
			}
			w.columns[at][of] = struct{}{}
		}
	}
	return nil
}

func (w *World) project(of guarded.Item, item string) ([]transform.Row, error) {
	img, err := new(change.Decoder).Image([]byte(item))
	if err != nil {
		return nil, err
	}
	return w.program(of).Project(img)
}

// apply executes what the sink sends for a write.
func (w *World) apply(write *transform.Write) error {
	if w.beside != nil {
		if err := w.beside(write); err != nil {
			return err
		}
	}
	all, err := bigtable.SealedRequests(Sealer(), write, w.families)
	if err != nil {
		return err
	}
	for i := range all {
		x := &all[i]
		row, todo := w.Bigtable.Row(string(x.Row)), x.Body
		if row.Holds(string(x.Qualifier), x.Version) {
			todo = x.Skip
		}
		for k := range todo {
			row.Execute(&todo[k])
		}
		collect(row)
	}
	return nil
}

// collect deletes the older versions of guards, as the rules of their families do.
func collect(row *cells.Row) {
	newest := map[column]int64{}
	for _, c := range row.Cells {
		at := column{"", c.Family, c.Qualifier}
		newest[at] = max(newest[at], c.At)
	}
	row.Cells = slices.DeleteFunc(row.Cells, func(c cells.Cell) bool {
		return (c.Family == transform.LiveFamily || c.Family == transform.DeadFamily) &&
			c.At < newest[column{"", c.Family, c.Qualifier}]
	})
}

func (w *World) rowsEver(of guarded.Item) (rows [][]byte) {
	for _, row := range slices.Sorted(maps.Keys(w.Ever[of])) {
		rows = append(rows, []byte(row))
	}
	return rows
}

// Repair resyncs an item, with the rows in which it differs, as the owner of the table does in the
// item's lane. A guard at the version future, if that is not 0, is replaced where the resync writes
// its row.
func (w *World) Repair(of guarded.Item, rows [][]byte, future change.Version) error {
	w.now += 120_000
	r := transform.Resync{Keys: []byte(of.Key), Version: change.Version(w.now - 60_000), Rows: rows, Future: future}
	if item, here := w.Items[of]; here {
		r.Item = []byte(item)
	}
	p, d, write := w.program(of), new(change.Decoder), new(transform.Write)
	read, err := p.RowsToRead(d, &r)
	if err != nil {
		return err
	}
	q := guard.Qualifier("p", sourceOf(of.Table), []byte(of.Key))
	r.Held = w.Bigtable.Held(transform.Item{Guard: q, Table: sourceOf(of.Table), Key: []byte(of.Key)}, read)
	if err := p.Resync(new(change.Decoder), &r, write); err != nil {
		return err
	}
	for i := range write.Rows {
		row := string(write.Rows[i].Key)
		w.remove(row, func(c *cells.Cell) bool {
			return c.At == int64(future) && c.Value == w.guardValue(of, row, c.Qualifier)
		})
	}
	return w.apply(write)
}

// Scan implements verify.Target.
func (w *World) Scan(ctx context.Context, f func(*verify.Row) error) error {
	return w.Lookup(ctx, slices.Sorted(maps.Keys(w.Bigtable.Rows)), f)
}

// Lookup implements verify.Target.
func (w *World) Lookup(_ context.Context, keys []string, f func(*verify.Row) error) error {
	for _, key := range keys {
		if row := w.row(key); row != nil {
			if err := f(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// row returns a row as a reader gets it: of each column the versions that its family keeps.
func (w *World) row(key string) *verify.Row {
	held := w.Bigtable.Rows[key]
	if held == nil || len(held.Cells) == 0 {
		return nil
	}
	all := slices.Clone(held.Cells)
	slices.SortFunc(all, func(a, b cells.Cell) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Qualifier, b.Qualifier), cmp.Compare(b.At, a.At))
	})
	out, n := &verify.Row{Key: []byte(key)}, 0
	for i, c := range all {
		if n++; i == 0 || all[i-1].Family != c.Family || all[i-1].Qualifier != c.Qualifier {
			n = 1
		}
		x := bigtable.Cell{Family: c.Family, Qualifier: []byte(c.Qualifier), Value: []byte(c.Value),
			Time: time.UnixMilli(c.At)}
		switch most := w.versions[c.Family]; {
		case c.Family == transform.LiveFamily && n == 1:
			out.Live = append(out.Live, x)
		case c.Family == transform.DeadFamily && n == 1:
			out.Dead = append(out.Dead, x)
		case c.Family != transform.LiveFamily && c.Family != transform.DeadFamily && (most == 0 || n <= most):
			out.Cells = append(out.Cells, x)
		}
	}
	return out
}

// ReadItems reads items of a table, as verify.Settler does.
func (w *World) ReadItems(_ context.Context, table string, keys [][]byte) (*source.ItemBatch, error) {
	b := &source.ItemBatch{Requested: w.Now(), Answered: w.Now()}
	for _, key := range keys {
		var raw []byte
		if item, here := w.Items[guarded.Item{Table: int(table[0] - 'S'), Key: string(key)}]; here {
			raw = []byte(item)
		}
		b.Items = append(b.Items, raw)
	}
	return b, nil
}

// Settler returns the settler of the world.
func (w *World) Settler() *verify.Settler {
	return &verify.Settler{Tables: w.Tables, Target: w, ReadItems: w.ReadItems, Now: w.Now, Lead: Lead,
		Prove: func(context.Context, change.Millis) error { return nil },
		Pause: func(context.Context, time.Duration) error { return nil }}
}
