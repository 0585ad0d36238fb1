package continuous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/guarded"
)

const (
	// A page of rows ends with the row that reaches one of these.
	rowsPerPage  = 1000
	bytesPerPage = 4 << 20
	keysPerRead  = 100 // of one BatchGetItem
)

var errEnough = errors.New("the page is full")

// stepRows compares one page of rows.
func (v *Verifier) stepRows(ctx context.Context) error {
	v.mu.Lock()
	start := ""
	if v.rows.Row != nil {
		start = string(v.rows.Row) + "\x00"
	}
	v.mu.Unlock()
	p := v.newPage()
	err := v.o.Target.ScanFrom(ctx, start, p.add)
	done := err == nil
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("read rows: %w", err)
	}
	units, err := v.comparePage(ctx, p, v.readEventually)
	if err != nil {
		return fmt.Errorf("compare rows of %s: %w", v.table, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	d := &v.rows
	d.Compared += int64(len(p.rows))
	d.spent += max(units, minUnits*float64(len(p.rows))) // rows without items must not take all turns
	if done {
		d.finish()
	} else {
		d.Row = p.rows[len(p.rows)-1].Key
	}
	return nil
}

// lookAgainAt compares rows again that had cells without a known owner, with strong readings of
// their items.
func (v *Verifier) lookAgainAt(ctx context.Context, rows []string) error {
	p := v.newPage()
	p.limit = 0
	if err := v.o.Target.Lookup(ctx, rows, p.add); err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	_, err := v.comparePage(ctx, p, func(ctx context.Context, keys [][]byte) (*source.ItemBatch, error) {
		return v.readStrongly(ctx, v.table, keys)
	})
	if err != nil {
		return fmt.Errorf("compare rows of %s: %w", v.table, err)
	}
	v.mu.Lock()
	for _, key := range rows {
		there := slices.ContainsFunc(p.rows, func(r *verify.Row) bool { return string(r.Key) == key })
		if !there {
			delete(v.cells, key)
		}
	}
	v.mu.Unlock()
	return v.o.Changed()
}

// rowPage is a page of rows of the target, with the items that their guards name.
type rowPage struct {
	guards *guarded.Guards
	limit  int // items; 0: any number
	rows   []*verify.Row
	bytes  int
	keys   [][]byte        // of the items
	named  map[string]bool // in keys
}

func (v *Verifier) newPage() *rowPage {
	return &rowPage{
		guards: guarded.NewGuards(v.o.Target, v.o.Tables), limit: max(v.o.Budget.PageLimit(minUnits), keysPerRead),
		named: map[string]bool{},
	}
}

// add adds a row. errEnough: it was the last one.
func (p *rowPage) add(row *verify.Row) error {
	row = row.Clone()
	p.rows = append(p.rows, row)
	for i := range row.Cells {
		p.bytes += len(row.Cells[i].Qualifier) + len(row.Cells[i].Value)
	}
	p.guards.Read(row)
	for i := range p.guards.List {
		g := &p.guards.List[i]
		if g.Ours() && g.Item.Table == 0 && !p.named[g.Item.Key] {
			p.named[g.Item.Key] = true
			p.keys = append(p.keys, []byte(g.Item.Key))
		}
	}
	if p.limit > 0 && (len(p.keys) >= p.limit || len(p.rows) >= rowsPerPage || p.bytes >= bytesPerPage) {
		return errEnough
	}
	return nil
}

// comparePage compares rows with all items that their guards name, and returns what reading those
// has cost. All cells of the rows are judged, because every owner is known.
func (v *Verifier) comparePage(
	ctx context.Context, p *rowPage, read func(context.Context, [][]byte) (*source.ItemBatch, error),
) (units float64, err error) {
	wanted := make(map[string][]guarded.Wanted, len(p.rows))
	for _, row := range p.rows {
		wanted[string(row.Key)] = nil
	}
	for keys := range slices.Chunk(p.keys, keysPerRead) {
		batch, err := read(ctx, keys)
		if err != nil {
			return units, fmt.Errorf("read items: %w", err)
		}
		units += batch.Units
		for _, raw := range batch.Items {
			if err := v.want(raw, wanted); err != nil {
				return units, err
			}
		}
	}
	compare := v.compare(true)
	for _, row := range p.rows {
		v.found.begin(row.Key)
		if err := compare.Compare(row.Key, wanted[string(row.Key)], row); err != nil {
			return units, err
		}
		v.found.end()
	}
	return units, nil
}

// want adds what an item should have in the rows of a page. An item that is gone, or that the
// mapping refuses, has nothing there: its guard makes it a candidate.
func (v *Verifier) want(raw []byte, wanted map[string][]guarded.Wanted) error {
	if raw == nil {
		return nil
	}
	rows, err := v.projector.Rows(raw)
	if guarded.IsRefusal(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range rows {
		list, here := wanted[string(rows[i].Key)]
		if !here {
			continue
		}
		w := guarded.Wanted{Item: guarded.Item{Key: string(v.projector.Key())}}
		if err := w.Decode(slices.Clone(v.projector.Encode(&rows[i]))); err != nil {
			return err
		}
		wanted[string(rows[i].Key)] = append(list, w)
	}
	return nil
}

// openRow is a row with cells without a known owner.
type openRow struct {
	cells []verify.Open // the first of them
	n     int64         // foreign cells
	other int64         // cells of which it cannot be told whose they are
	looks int           // how often in a row it was like that: once does not count
	due   time.Time     // of the next look
}

const (
	maxOpenRows    = 10_000
	cellsPerRow    = 100              // that are listed
	rowsPerLook    = 100              // at which is looked again at once
	secondLook     = 15 * time.Second // after the first one
	confirmedLooks = 2
)

// dueRows returns rows at which is to be looked again. The mutex is held.
func (v *Verifier) dueRows(now time.Time) (rows []string) {
	for key, r := range v.cells {
		if !now.Before(r.due) {
			rows = append(rows, key)
		}
		if len(rows) == rowsPerLook {
			break
		}
	}
	slices.Sort(rows)
	return rows
}

// found receives what a comparison finds; it belongs to the goroutine that walks.
type found struct {
	v     *Verifier
	all   bool             // all items of the rows are known
	items []guarded.Wanted // without all: those that are
	row   openRow
	key   []byte
	kept  int64
}

// begin begins a row; all its items are known.
func (f *found) begin(key []byte) { f.key, f.row, f.kept = key, openRow{}, 0 }

// end notes what was found in the row.
func (f *found) end() {
	v, key := f.v, string(f.key)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rows.Kept += f.kept
	before := v.cells[key]
	if f.row.n+f.row.other == 0 {
		delete(v.cells, key)
		return
	}
	wait := secondLook
	if before != nil {
		f.row.looks, wait = before.looks, v.o.Again
	} else if len(v.cells) >= maxOpenRows {
		return
	}
	row := f.row
	row.looks++
	row.due = time.Now().Add(min(wait, v.o.Again))
	v.cells[key] = &row
}

// Candidate implements guarded.Findings.
func (f *found) Candidate(kind verify.Kind, of guarded.Item, row []byte) error {
	known := func(w guarded.Wanted) bool { return w.Item == of }
	if of.Table == 0 && (f.all || slices.ContainsFunc(f.items, known)) {
		f.v.candidate(kind, of, row)
	}
	return nil
}

// Kept implements guarded.Findings.
func (f *found) Kept([]byte, *guarded.Held) { f.kept++ }

// Foreign implements guarded.Findings.
func (f *found) Foreign(row []byte, h *guarded.Held, pipeline string) error {
	f.row.n++
	f.list(verify.Foreign, row, h, pipeline)
	return nil
}

// Unproven implements guarded.Findings.
func (f *found) Unproven(kind verify.Kind, row []byte, h *guarded.Held) error {
	f.row.other++
	f.list(kind, row, h, "")
	return nil
}

func (f *found) list(kind verify.Kind, row []byte, h *guarded.Held, pipeline string) {
	if !f.all || len(f.row.cells) == cellsPerRow {
		return
	}
	f.row.cells = append(f.row.cells, verify.Open{
		Kind: kind, Row: bytes.Clone(row), Family: h.Family, Qualifier: bytes.Clone(h.Qualifier), Pipeline: pipeline,
	})
}
