package ir

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Eval is one evaluation: the item in scope, and the cells that its emitters have given so far. It
// is reused from item to item, so that evaluating allocates next to nothing.
type Eval struct {
	Scope    tmpl.Scope
	Captures []string  // room for the captures of any rule
	Buf      []byte    // row keys, qualifiers and values; cells hold slices of it
	Cells    []Emitted // of all rows
	Raw      []byte    // the image as the source sent it, for raw documents; nil: write the decoded one
	Values   bool      // false: cells without values, to find which cells an image wrote

	attrs  []change.Attr // of a document
	time   int64         // of the emitter's cells, ms
	mapped bool          // the mapping gave the time
}

// NewEval returns an evaluation with room for the captures of the program's rules.
func (p *Program) NewEval() *Eval { return &Eval{Captures: make([]string, p.MaxCaptures)} }

// Emitted is a cell with its origin.
type Emitted struct {
	By        *Emitter
	Family    *FamilyRule
	Qualifier []byte
	Value     []byte // nil where the evaluation is without values
	Time      int64  // ms; counts when Mapped
	Mapped    bool
	Possible  bool // a column that the item's key alone decides, whether or not the item has it
	Emptied   bool // the newest version in the target's column is empty
}

// SameColumn reports whether two cells are in one column.
func (c *Emitted) SameColumn(o *Emitted) bool {
	return c.Family == o.Family && bytes.Equal(c.Qualifier, o.Qualifier)
}

// SameCell reports whether two cells are in one column at one time.
func (c *Emitted) SameCell(o *Emitted) bool {
	return c.SameColumn(o) && c.Mapped == o.Mapped && c.Time == o.Time
}

// ColumnKey is the cell's column as a map's key.
func (c *Emitted) ColumnKey() string { return c.Family.Name + ":" + string(c.Qualifier) }

// CellKey is the cell's column and time as a map's key; it differs from every ColumnKey.
func (c *Emitted) CellKey() string {
	return "=" + c.ColumnKey() + "\x00" + strconv.FormatInt(c.Time, 10) + "\x00" + strconv.FormatBool(c.Mapped)
}

// Hides reports whether a reader would see only one of two cells in one column. Both are seen where
// the server merges them, and where two siblings (`cell_id: ts`) or two versions of a list have
// different times.
func (c *Emitted) Hides(o *Emitted) bool {
	byTime := c.By.Time.Siblings && o.By.Time.Siblings || c.By == o.By && c.By.Versions()
	return !c.By.Aggregate() && (!byTime || c.Time == o.Time)
}

// presentValue returns the attribute's value; nil when the item has no cell for it.
func (e *Emitter) presentValue(x *Eval, attr string) *change.Value {
	v := x.Scope.Image.Get(attr)
	if v == nil || (v.Kind == change.KindNull && !e.Values.NullEmpty) {
		return nil
	}
	return v
}

// stampTime evaluates the time of the cells that follow. skip is true when there is no such time
// and the mapping omits the cells.
func (e *Emitter) stampTime(x *Eval) (skip bool, err error) {
	if e.Time.Template == nil {
		x.time, x.mapped = 0, false
		return false, nil
	}
	x.time, x.mapped, skip, err = e.Time.evaluate(x, e.Family)
	return skip, err
}

// addCell adds the cell of a value, without its bytes when values are not wanted.
func (e *Emitter) addCell(x *Eval, v *change.Value) error {
	if v.Kind == change.KindNull && !e.Values.NullEmpty {
		return nil
	}
	c := Emitted{By: e, Family: e.Family, Time: x.time, Mapped: x.mapped}
	x.Scope.Vars[tmpl.VarType] = v.Kind.String()
	var err error
	if c.Qualifier, err = e.ColumnName(x); err != nil {
		return err
	}
	switch {
	case e.Fallback != nil:
		return e.addCellOrFallback(x, c, v)
	case x.Values:
		start := len(x.Buf)
		if x.Buf, err = e.Values.Encode(x.Buf, v); err != nil {
			return WrapRefusal("value", err, "column %s:%s", e.Family.Name, e.attributeName(x))
		}
		c.Value = x.Buf[start:len(x.Buf):len(x.Buf)]
	}
	x.Cells = append(x.Cells, c)
	return nil
}

// addConstant adds a cell with the same value for every item.
func (e *Emitter) addConstant(x *Eval, value []byte) (err error) {
	c := Emitted{By: e, Family: e.Family, Time: x.time, Mapped: x.mapped}
	if c.Qualifier, err = e.ColumnName(x); err != nil {
		return err
	}
	if x.Values {
		c.Value = value
	}
	x.Cells = append(x.Cells, c)
	return nil
}

// addCellOrFallback adds a number to its family, or as text to the fallback family when it does not
// fit. It encodes the number even when values are not wanted, because the encoding decides the
// family.
func (e *Emitter) addCellOrFallback(x *Eval, c Emitted, v *change.Value) error {
	start := len(x.Buf)
	out, err := e.Values.Encode(x.Buf, v)
	var wrong *encode.TypeError
	if err != nil && !errors.Is(err, encode.ErrRange) && !errors.As(err, &wrong) {
		return WrapRefusal("value", err, "column %s:%s", e.Family.Name, e.attributeName(x))
	}
	if err != nil {
		c.Family = e.Fallback
		if out, err = encode.Natural(x.Buf[:start], v); err != nil {
			return WrapRefusal("value", err, "column %s:%s", e.Fallback.Name, e.attributeName(x))
		}
	}
	x.Buf = out
	if x.Values {
		c.Value = out[start:len(out):len(out)]
	}
	x.Cells = append(x.Cells, c)
	return nil
}

// attributeName returns the attribute that a cell is made of, for refusals, which must not show its
// value.
func (e *Emitter) attributeName(x *Eval) string {
	if _, several := e.Source.(*Attrs); several {
		return x.Scope.Vars[tmpl.VarAttr]
	}
	return e.Source.Attributes().Names[0]
}

// EmitPossible adds cells, without values, for all columns that the item's key alone decides,
// whether or not the item has them. It is called for emitters with FromKey.
func (e *Emitter) EmitPossible(x *Eval) error {
	c := Emitted{By: e, Family: e.Family, Possible: true}
	if e.Time.Siblings {
		skip, err := e.stampTime(x)
		if err != nil || skip {
			return err
		}
		c.Time, c.Mapped = x.time, x.mapped
	}
	names := e.Source.Listed()
	if names == nil {
		return e.addPossibleColumn(x, c)
	}
	for _, name := range names {
		name = e.Source.Attributes().Written(name)
		x.Scope.Vars[tmpl.VarAttr], x.Scope.Vars[tmpl.VarPath] = name, name
		if err := e.addPossibleColumn(x, c); err != nil {
			return err
		}
	}
	return nil
}

// addPossibleColumn adds the column in scope, in the emitter's family and in the fallback.
func (e *Emitter) addPossibleColumn(x *Eval, c Emitted) (err error) {
	if c.Qualifier, err = e.ColumnName(x); err != nil {
		return err
	}
	x.Cells = append(x.Cells, c)
	if e.Fallback != nil {
		c.Family = e.Fallback
		x.Cells = append(x.Cells, c)
	}
	return nil
}
