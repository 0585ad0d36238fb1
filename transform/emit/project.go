package emit

import (
	"crypto/sha256"
	"errors"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// memory is what a Write reuses from call to call.
type memory struct {
	eval    evaluation
	earlier []projection // of images before the last
	deletes []Delete
	cells   []Cell
	key     []byte // canonical
	guard   []byte
	seen    map[string]int // columns and cells that the item has in a row now
}

// evaluation evaluates whole items, and holds the rows and cells that they give.
type evaluation struct {
	ir.Eval
	p        *ir.Program
	rows     []projectedRow
	keysOnly bool // the image is the keys alone: only rows, and columns that the key decides, are evaluated
}

// projection is the rows of one image.
type projection struct {
	rule *ir.Rule // nil: no rule matched, or the item is gone
	rows []projectedRow
}

// projectedRow is one row of a projection.
type projectedRow struct {
	plan     *ir.Plan
	key      []byte
	from, to int // evaluation.Cells[from:to] are the cells that the item has
	possible int // evaluation.Cells[to:possible] are all columns that its key decides, whether or not it has them
}

func newMemory(p *ir.Program) *memory {
	return &memory{eval: evaluation{p: p, Eval: *p.NewEval()}}
}

// The limits of the buffers that a Write keeps between two changes: the memory of every lane must
// not stay as large as its largest item.
const (
	maxRetainedBytes = 1 << 20
	maxRetainedCells = 8 << 10
)

// reset empties the memory for the next change, and releases buffers that a large item has grown.
func (m *memory) reset() {
	x := &m.eval
	if cap(x.Buf) > maxRetainedBytes {
		x.Buf = nil
	}
	if cap(x.Cells) > maxRetainedCells {
		x.Cells, m.cells, m.deletes, m.seen = nil, nil, nil, nil
	}
	x.Raw, x.Scope.Image = nil, nil
	x.Buf, x.Cells, x.rows = x.Buf[:0], x.Cells[:0], x.rows[:0]
	m.earlier, m.deletes, m.cells = m.earlier[:0], m.deletes[:0], m.cells[:0]
}

// Project returns the rows and cells of an item: what Bigtable holds when it is up to date. The
// error is a *tmpl.Refusal when the mapping does not take the item. An item that the mapping drops
// has no rows.
//
// Rule 7: the result depends on the item and the mapping alone.
func Project(p *ir.Program, img change.Image) ([]Row, error) {
	m := newMemory(p)
	v, err := m.eval.project(img, true)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, len(v.rows))
	for i := range v.rows {
		pr := &v.rows[i]
		row := Row{Key: pr.key, Class: pr.plan.Class, Exclusive: pr.plan.Exclusive}
		for _, c := range m.eval.Cells[pr.from:pr.to] {
			row.Cells = append(row.Cells, outputCell(&c))
		}
		if err := checkRow(&row); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// TracedRow is a row of an item with the plan that gives it and the emitters of its cells.
type TracedRow struct {
	Plan  *ir.Plan
	Cells []ir.Emitted
}

// Trace is Project with the origin of rows and cells, for explanations.
func Trace(p *ir.Program, img change.Image) ([]TracedRow, error) {
	m := newMemory(p)
	v, err := m.eval.project(img, true)
	if err != nil {
		return nil, err
	}
	rows := make([]TracedRow, len(v.rows))
	for i, pr := range v.rows {
		rows[i] = TracedRow{Plan: pr.plan, Cells: m.eval.Cells[pr.from:pr.to]}
	}
	return rows, nil
}

// project evaluates an image: it finds the rule of the image and evaluates its rows.
func (x *evaluation) project(img change.Image, values bool) (projection, error) {
	x.Scope.Image = img
	r, err := x.p.RuleOf(&x.Eval)
	if err != nil {
		return projection{}, err
	}
	if r == nil {
		return projection{}, refuseNoRule()
	}
	return x.evaluateRule(r, values)
}

// evaluateRule evaluates the rows of a rule. The scope already has the image and the rule's
// captures.
func (x *evaluation) evaluateRule(r *ir.Rule, values bool) (projection, error) {
	x.Values = values
	first := len(x.rows)
	for i, pl := range r.Plans {
		if i > 0 {
			ok, err := ir.Matches(pl.Conditions, pl.When, x.Scope.Image, x.Captures)
			if err != nil {
				return projection{}, err
			}
			if !ok {
				continue
			}
		}
		if err := x.evaluateRow(pl, i > 0); err != nil {
			return projection{}, err
		}
	}
	pr := projection{rule: r, rows: x.rows[first:len(x.rows):len(x.rows)]}
	return pr, refuseSameRow(pr.rows)
}

// evaluateRow evaluates one row of the item in scope. An index row is left out if its key needs an
// attribute that the item lacks.
func (x *evaluation) evaluateRow(pl *ir.Plan, index bool) error {
	start := len(x.Buf)
	var err error
	if x.Buf, err = pl.Row.Append(x.Buf, &x.Scope); err != nil {
		x.Buf = x.Buf[:start]
		if m := (*tmpl.MissingError)(nil); errors.As(err, &m) && index {
			return nil
		}
		return ir.WrapRefusal("row_key", err, "row key of %s", pl.Name)
	}
	row := projectedRow{plan: pl, key: x.Buf[start:len(x.Buf):len(x.Buf)], from: len(x.Cells)}
	if len(row.key) == 0 || len(row.key) > ir.MaxRowKey {
		return tmpl.Refuse("row_key_size", "the row key of %s has %d bytes, Bigtable takes 1 to %d",
			pl.Name, len(row.key), ir.MaxRowKey)
	}
	if !x.keysOnly {
		for _, e := range pl.Emitters {
			if err := ignoreMissing(e.Emit(&x.Eval)); err != nil {
				return err
			}
		}
	}
	row.to = len(x.Cells)
	if pl.CompareCells {
		if err := refuseSameCell(x.Cells[row.from:row.to]); err != nil {
			return err
		}
	}
	if err := x.addPossibleCells(pl); err != nil {
		return err
	}
	row.possible = len(x.Cells)
	x.rows = append(x.rows, row)
	return nil
}

// addPossibleCells adds the columns that the item's key decides, where the deletes depend on them.
func (x *evaluation) addPossibleCells(pl *ir.Plan) error {
	if pl.Exclusive && len(pl.History) == 0 {
		return nil
	}
	for _, e := range pl.Emitters {
		if !e.FromKey {
			continue
		}
		if err := ignoreMissing(e.EmitPossible(&x.Eval)); err != nil {
			return err
		}
	}
	return nil
}

// ignoreMissing drops the error of an emitter with a column that needs an attribute that the item
// lacks: the emitter then has no cells.
func ignoreMissing(err error) error {
	if m := (*tmpl.MissingError)(nil); errors.As(err, &m) {
		return nil
	}
	return err
}

// refuseSameCell refuses two cells in one column: the later or newer one would hide the other.
func refuseSameCell(cells []ir.Emitted) error {
	var seen map[string]int
	if len(cells) > 32 {
		seen = make(map[string]int, len(cells))
	}
	for i := range cells {
		if seen != nil {
			k := cells[i].ColumnKey()
			if j, dup := seen[k]; dup && cells[i].Hides(&cells[j]) {
				return sameCellRefusal(&cells[j], &cells[i])
			}
			seen[k] = i
			continue
		}
		for j := range i {
			if cells[i].SameColumn(&cells[j]) && cells[i].Hides(&cells[j]) {
				return sameCellRefusal(&cells[j], &cells[i])
			}
		}
	}
	return nil
}

// sameCellRefusal returns the refusal of an item that writes one column twice.
func sameCellRefusal(a, b *ir.Emitted) error {
	return tmpl.Refuse("collision", "two sources of the rule write the same column of family %s: %s and %s", a.Family.Name,
		a.By.Describe(), b.By.Describe())
}

// refuseSameRow refuses an item that two plans give the same row.
func refuseSameRow(rows []projectedRow) error {
	for i := range rows {
		for j := range i {
			if string(rows[i].key) == string(rows[j].key) {
				return tmpl.Refuse("collision", "%s and %s give the same row key for this item", rows[j].plan.Name,
					rows[i].plan.Name)
			}
		}
	}
	return nil
}

// outputCell returns an emitted cell in the form that the sink takes.
func outputCell(c *ir.Emitted) Cell {
	return Cell{Family: c.Family.Name, Qualifier: c.Qualifier, Value: c.Value, Time: c.Time, Mapped: c.Mapped,
		Aggregate: c.By.Aggregate(), RawJSON: c.By.RawJSON}
}

// refuseNoRule returns the refusal of an item that no rule takes.
func refuseNoRule() error {
	return tmpl.Refuse("no_rule", "no rule matches the item; add a rule, or one with `drop: true`")
}

// checkRow refuses a row that exceeds Bigtable's limits.
func checkRow(r *Row) error {
	if n := len(r.Cells) + len(r.Deletes) + 4; n > ir.MaxMutations {
		return tmpl.Refuse("mutations", "the item needs %d mutations of one row, Bigtable takes %d; write its large "+
			"collection as JSON", n, ir.MaxMutations)
	}
	size := 0
	for i := range r.Cells {
		n := len(r.Cells[i].Value)
		if n > ir.MaxCell {
			return tmpl.Refuse("cell_size", "a cell of family %s has %d bytes, Bigtable takes %d", r.Cells[i].Family, n,
				ir.MaxCell)
		}
		size += n + len(r.Cells[i].Qualifier)
	}
	if size > ir.MaxRow {
		return tmpl.Refuse("row_size", "the item's cells have %d bytes, a Bigtable row takes %d", size, ir.MaxRow)
	}
	return nil
}

// guard returns the hash that names an item in shared rows, and buf for the next call.
func guard(buf []byte, pipeline, table string, key []byte) (g [16]byte, _ []byte) {
	buf = append(append(append(append(append(buf[:0], pipeline...), 0), table...), 0), key...)
	sum := sha256.Sum256(buf)
	copy(g[:], sum[:])
	return g, buf
}
