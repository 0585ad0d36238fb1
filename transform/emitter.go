package transform

import (
	"bytes"
	"errors"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

type encoding func(dst []byte, v *change.Value) ([]byte, error)

// emitter turns one source form of an item into cells.
type emitter struct {
	src       *lang.Emitter
	kind      string
	attr      string
	names     []string        // attrs, doc: the attributes, sorted; nil = all
	except    map[string]bool // attrs, doc
	rename    map[string]string
	family    *family
	qualifier *tmpl.Template
	spelled   []*tmpl.Template // the qualifier with the name of each attribute, where those are known
	bare      bool             // the qualifier is {attr} alone
	encode    encoding
	fallback  *family
	ts        *tmpl.Template
	missing   string // when ts has no value
	siblings  bool   // cell_id: ts: several items share the column, the cell time tells them apart
	fromKey   bool   // the column, and with siblings the time, is known from the key
	shared    bool   // other items may write the column, acknowledged
	flatten   bool
	joiner    string
	escapes   bool // the joiner is escaped inside of names
	format    string
	value     []byte // const, set: what the cell holds
	nullEmpty bool
	versions  bool // list: elements are versions of one column
	otherwise string
	other     *tmpl.Template
	otherFam  *family
	beside    []*emitter // types: the emitters whose attributes it describes
}

// out is a column, or a template of columns, that an emitter may write.
type out struct {
	family *family
	column *tmpl.Template
	src    lang.Text // where the author wrote it
	main   bool      // not the way out for values that do not fit
}

// outs are all places where the emitter's cells may go: every proof has to hold for each of them.
func (e *emitter) outs() []out {
	columns := e.spelled
	if len(columns) == 0 {
		columns = []*tmpl.Template{e.qualifier}
	}
	var all []out
	for _, column := range columns {
		all = append(all, out{e.family, column, e.src.To, true})
		if e.fallback != nil {
			all = append(all, out{e.fallback, column, e.src.Fallback, false})
		}
	}
	if e.other != nil {
		all = append(all, out{e.otherFam, e.other, e.src.Otherwise, false})
	}
	return all
}

func (e *emitter) aggregate() bool { return e.family.Aggregate != "" }

// timed says that the mapping gives the cells' times.
func (e *emitter) timed() bool { return e.ts != nil || e.versions }

// historic says that older versions of the emitter's columns in a family are wanted.
func (e *emitter) historic(f *family) bool { return f.history && !e.timed() }

// describe names the emitter in messages as its author wrote it.
func (e *emitter) describe() string {
	switch {
	case e.kind == "types":
		return "the type sidecar"
	case e.kind == "attrs" && e.names == nil:
		return "attrs: all"
	case e.kind == "attrs":
		return "attrs: [" + strings.Join(e.names, ", ") + "]"
	case e.attr != "":
		return e.kind + ": " + e.attr
	}
	return e.kind
}

// cell is a cell with its origin. A footprint has no value.
type cell struct {
	em     *emitter
	fam    *family
	qual   []byte
	value  []byte
	time   int64
	mapped bool
	tag    bool // column known from the key alone, whether or not the item has it
}

// emit adds the emitter's cells for the item in x.
func (e *emitter) emit(x *exec) error {
	v := (*change.Value)(nil)
	if e.attr != "" {
		if v = x.scope.Image.Get(e.attr); v == nil || (v.Kind == change.KindNull && !e.nullEmpty) {
			return nil
		}
	}
	t, mapped, skip, err := e.time(x)
	if err != nil || skip {
		return err
	}
	x.time, x.mapped = t, mapped
	switch e.kind {
	case "attr":
		return e.named(x, e.attr, v)
	case "attrs":
		return e.attrs(x)
	case "const":
		return e.cell(x, nil)
	case "doc":
		return e.document(x)
	case "types":
		return e.sidecar(x)
	case "map":
		return e.members(x, v, change.KindMap)
	case "list":
		return e.members(x, v, change.KindList)
	default:
		return e.members(x, v, 0)
	}
}

// cell adds one cell: a footprint when values are not wanted.
func (e *emitter) cell(x *exec, v *change.Value) error {
	if v != nil && v.Kind == change.KindNull && !e.nullEmpty && e.kind != "doc" {
		return nil
	}
	c := cell{em: e, fam: e.family, time: x.time, mapped: x.mapped}
	if v != nil {
		x.scope.Vars[tmpl.VarType] = v.Kind.String()
	}
	var err error
	if c.qual, err = e.column(x); err != nil {
		return err
	}
	switch {
	case e.fallback != nil && v != nil:
		return e.fitting(x, c, v)
	case !x.values:
	case v == nil:
		c.value = e.value
	default:
		start := len(x.buf)
		if x.buf, err = e.encode(x.buf, v); err != nil {
			return refusal("value", err, "column %s:%s", e.family.Name, e.where(x))
		}
		c.value = x.buf[start:len(x.buf):len(x.buf)]
	}
	x.cells = append(x.cells, c)
	return nil
}

// where names the source of a cell without its content.
func (e *emitter) where(x *exec) string {
	if e.kind == "attrs" {
		return x.scope.Vars[tmpl.VarAttr]
	}
	return e.attr
}

func (e *emitter) column(x *exec) (q []byte, err error) {
	start := len(x.buf)
	if e.bare {
		x.buf = append(x.buf, x.scope.Vars[tmpl.VarAttr]...)
	} else if x.buf, err = e.qualifier.Append(x.buf, &x.scope); err != nil {
		if m := (*tmpl.MissingError)(nil); errors.As(err, &m) {
			return nil, m // the emitter is optional
		}
		return nil, refusal("column", err, "column of family %s", e.family.Name)
	}
	if q = x.buf[start:len(x.buf):len(x.buf)]; len(q) > maxQualifier {
		return nil, tmpl.Refuse("qualifier_size", "a column name in family %s has %d bytes, Bigtable takes %d", e.family.Name, len(q), maxQualifier)
	}
	return q, nil
}

// fitting writes a number to its family, or as text to the fallback family when it does not fit. As a
// footprint it stands for both.
func (e *emitter) fitting(x *exec, c cell, v *change.Value) error {
	start := len(x.buf)
	out, err := e.encode(x.buf, v)
	var wrong *encode.TypeError
	if err != nil && !errors.Is(err, encode.ErrRange) && !errors.As(err, &wrong) {
		return refusal("value", err, "column %s:%s", e.family.Name, e.where(x))
	}
	if err != nil {
		c.fam = e.fallback
		if out, err = encode.Natural(x.buf[:start], v); err != nil {
			return refusal("value", err, "column %s:%s", e.fallback.Name, e.where(x))
		}
	}
	x.buf = out
	if x.values {
		c.value = out[start:len(out):len(out)]
	}
	x.cells = append(x.cells, c)
	return nil
}

// sidecar adds the cell that tells the types of all attributes written that are not strings.
func (e *emitter) sidecar(x *exec) (err error) {
	c := cell{em: e, fam: e.family}
	if c.qual, err = e.column(x); err != nil {
		return err
	}
	start := len(x.buf)
	x.buf = encode.Types(x.buf, x.scope.Image, func(name string) bool { return e.covers(x.p, name) })
	if c.value = x.buf[start:len(x.buf):len(x.buf)]; len(c.value) > 0 {
		x.cells = append(x.cells, c)
	}
	return nil
}

// covers says whether an attribute is written by the emitters that a sidecar stands beside.
func (e *emitter) covers(p *Program, name string) bool {
	for _, o := range e.beside {
		switch o.kind {
		case "attrs":
			if o.takes(p, name) {
				return true
			}
		case "attr", "map", "set", "list":
			if o.attr == name {
				return true
			}
		}
	}
	return false
}

// possible adds footprints of all columns that the item's key alone decides, whether or not it has them.
func (e *emitter) possible(x *exec) error {
	c := cell{em: e, fam: e.family, tag: true}
	if e.siblings {
		t, mapped, skip, err := e.time(x)
		if err != nil || skip {
			return err
		}
		c.time, c.mapped = t, mapped
	}
	if e.names == nil || e.kind == "doc" {
		return e.possibleColumn(x, c)
	}
	for _, name := range e.names {
		if to, ok := e.rename[name]; ok {
			name = to
		}
		x.scope.Vars[tmpl.VarAttr], x.scope.Vars[tmpl.VarPath] = name, name
		if err := e.possibleColumn(x, c); err != nil {
			return err
		}
	}
	return nil
}

func (e *emitter) possibleColumn(x *exec, c cell) (err error) {
	if e.kind == "attr" {
		name := e.attr
		if to, ok := e.rename[name]; ok {
			name = to
		}
		x.scope.Vars[tmpl.VarAttr], x.scope.Vars[tmpl.VarPath] = name, name
	}
	if c.qual, err = e.column(x); err != nil {
		return err
	}
	x.cells = append(x.cells, c)
	if e.fallback != nil {
		c.fam = e.fallback
		x.cells = append(x.cells, c)
	}
	return nil
}

func (c *cell) sameColumn(o *cell) bool {
	return c.fam == o.fam && bytes.Equal(c.qual, o.qual)
}

func (c *cell) same(o *cell) bool {
	return c.sameColumn(o) && c.mapped == o.mapped && c.time == o.time
}
