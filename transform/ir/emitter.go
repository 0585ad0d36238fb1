package ir

import (
	"errors"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Emitter is one compiled entry under `cells`: a source of values, and the columns that they go to.
// Its fields are common to all kinds of sources; the rest is in the Source.
type Emitter struct {
	Entry     *lang.Emitter // the entry as its author wrote it
	Source    Source
	Family    *FamilyRule
	Qualifier *tmpl.Template
	PerName   []*tmpl.Template // the qualifier with each attribute's name filled in, where the names are known
	NameOnly  bool             // the qualifier is the variable {attr} and nothing else
	Fallback  *FamilyRule      // family of numbers that do not fit the encoding, as text; nil: such an item is refused
	Values    Values
	Time      CellTime
	Timed     bool // the mapping gives the cells' times
	Shared    bool // other items may write the columns, acknowledged by the author
	FromKey   bool // the column, and with siblings the time, is known from the item's key
	RawJSON   bool // a document in the source's own JSON
}

// Values is the conversion of an attribute's value to the bytes of a cell. Documents, constants and
// the type sidecar do not use it.
type Values struct {
	Encode    Encoding
	NullEmpty bool     // a NULL gives an empty cell; otherwise it gives none
	Flatten   *Flatten // maps become one cell per leaf; nil: a map is one value
}

// Encoding appends the bytes of a cell to dst.
type Encoding func(dst []byte, v *change.Value) ([]byte, error)

// Source is one kind of source under `cells`. Each kind is a small type in a file of its own.
type Source interface {
	// Describe names the source in messages, in the words of the mapping file.
	Describe() string
	// Attributes returns the attributes with values that the cells hold, as a whole or in part.
	Attributes() *Attributes
	// Decoded returns the attributes that must be decoded to make the cells. It differs from
	// Attributes for a document that is copied undecoded, and for a cell that is made of the types
	// of attributes and not of their values.
	Decoded() *Attributes
	// Listed returns the attributes that the author named one by one, each with a column of its
	// own.
	Listed() []string
	// Variable returns the template variable that differs from cell to cell, and whether an item
	// may have several cells.
	Variable() (variable int, several bool)
	// emit appends the item's cells to the evaluation.
	emit(e *Emitter, x *Eval) error
}

// Emit appends the emitter's cells for the item in scope. A *tmpl.MissingError means that the
// column needs an attribute that the item lacks: the emitter then has no cells for it.
func (e *Emitter) Emit(x *Eval) error { return e.Source.emit(e, x) }

// Describe names the emitter in messages, in the words of the mapping file.
func (e *Emitter) Describe() string { return e.Source.Describe() }

// Holds reports whether the emitter's cells hold the attribute's value, or a part of it.
func (e *Emitter) Holds(attr string) bool { return e.Source.Attributes().Has(attr) }

// Aggregate reports whether the server merges the emitter's cells instead of replacing them.
func (e *Emitter) Aggregate() bool { return e.Family.Aggregate != "" }

// KeepsVersions reports whether older versions of the emitter's columns in a family are wanted.
func (e *Emitter) KeepsVersions(f *FamilyRule) bool { return f.History && !e.Timed }

// Versions reports whether the elements of a list are the versions of one column.
func (e *Emitter) Versions() bool {
	l, ok := e.Source.(*List)
	return ok && l.Versions
}

// ColumnSet is a column, or a template of columns, that an emitter may write.
type ColumnSet struct {
	Family *FamilyRule
	Column *tmpl.Template
	At     problem.Text // where the author wrote it
	Main   bool         // false: the column of `fallback` or `otherwise`, for values that do not fit
}

// String is the column as its author would write it.
func (c ColumnSet) String() string { return c.Family.Name + ":" + c.Column.Source }

// Columns returns all columns that the emitter may write, whatever the item: every proof must hold
// for each of them.
func (e *Emitter) Columns() []ColumnSet {
	main := e.PerName
	if len(main) == 0 {
		main = []*tmpl.Template{e.Qualifier}
	}
	var all []ColumnSet
	for _, column := range main {
		all = append(all, ColumnSet{e.Family, column, e.Entry.To, true})
		if e.Fallback != nil {
			all = append(all, ColumnSet{e.Fallback, column, e.Entry.Fallback, false})
		}
	}
	if o := e.Otherwise(); o != nil {
		all = append(all, ColumnSet{o.Family, o.Qualifier, e.Entry.Otherwise, false})
	}
	return all
}

// Otherwise returns the emitter for values that the source cannot expand; nil where they are
// refused or skipped.
func (e *Emitter) Otherwise() *Emitter {
	if c, ok := e.Source.(interface{ Others() *Otherwise }); ok {
		return c.Others().Emitter
	}
	return nil
}

// SkipsOthers reports whether values that the source cannot expand leave no cell.
func (e *Emitter) SkipsOthers() bool {
	c, ok := e.Source.(interface{ Others() *Otherwise })
	return ok && c.Others().Skip
}

// Diverts reports whether some values go to other columns than the main ones.
func (e *Emitter) Diverts() bool { return e.Fallback != nil || e.Otherwise() != nil }

// InFamily reports whether a family is the emitter's main family or its fallback.
func (e *Emitter) InFamily(name string) bool {
	return e.Family.Name == name || e.Fallback != nil && e.Fallback.Name == name
}

// ColumnOf is the qualifier's template with the name of one attribute filled in where the source
// has a variable for it.
func (e *Emitter) ColumnOf(attr string) string {
	if !e.NamesColumns() {
		return e.Qualifier.Source
	}
	name := e.Source.Attributes().Written(attr)
	return strings.NewReplacer("{attr}", name, "{path}", name).Replace(e.Qualifier.Source)
}

// NamesColumns reports whether the names of attributes stand in the emitter's columns.
func (e *Emitter) NamesColumns() bool {
	return e.Qualifier.Vars[tmpl.VarAttr] || e.Qualifier.Vars[tmpl.VarPath]
}

// MayEmit reports whether the emitter may write a column: a column with variables may be any
// column.
func (e *Emitter) MayEmit(f *FamilyRule, qualifier string) bool {
	_, declared, _ := strings.Cut(e.Entry.To.S, ":")
	otherwise := e.Otherwise()
	diverted := otherwise != nil && otherwise.Family == f
	if e.Family != f && e.Fallback != f && !diverted {
		return false
	}
	if s, ok := e.Source.(*Attrs); ok && e.NameOnly && !s.Selected.All() {
		named := func(n string) bool { return n == qualifier || s.Selected.Rename[n] == qualifier }
		return slices.ContainsFunc(s.Selected.Names, named)
	}
	return len(e.Qualifier.Uses) > 0 || e.NameOnly || diverted || declared == qualifier
}

// CommonColumn returns a pair of columns, one of each emitter, that may be the same.
func CommonColumn(a, b *Emitter) (ca, cb ColumnSet, ok bool) {
	for _, ca := range a.Columns() {
		for _, cb := range b.Columns() {
			if ca.Family.Name == cb.Family.Name && tmpl.Overlap(ca.Column.Shape, cb.Column.Shape) {
				return ca, cb, true
			}
		}
	}
	return ca, cb, false
}

// Avoids reports whether a list or wildcard of plain attribute names never writes the main column
// of another emitter, because it does not have the attribute of that name.
func (e *Emitter) Avoids(other *Emitter) bool {
	if !e.plainNames() {
		return false
	}
	names := e.Source.Attributes()
	if other.plainNames() {
		theirs := other.Source.Attributes().Names
		return theirs != nil && !slices.ContainsFunc(theirs, names.Has)
	}
	if len(other.Qualifier.Uses) > 0 {
		return false
	}
	column, err := other.Qualifier.Append(nil, &tmpl.Scope{}) // evaluated: in its source, a brace is {{
	return err == nil && !names.Has(string(column))
}

// plainNames reports whether each column is named by its attribute and nothing else.
func (e *Emitter) plainNames() bool {
	s, ok := e.Source.(*Attrs)
	return ok && e.NameOnly && e.Values.Flatten == nil && len(s.Selected.Rename) == 0
}

// ColumnName evaluates the qualifier in the scope. A *tmpl.MissingError means that the item lacks
// an attribute of the qualifier.
func (e *Emitter) ColumnName(x *Eval) (q []byte, err error) {
	start := len(x.Buf)
	if e.NameOnly {
		x.Buf = append(x.Buf, x.Scope.Vars[tmpl.VarAttr]...)
	} else if x.Buf, err = e.Qualifier.Append(x.Buf, &x.Scope); err != nil {
		if m := (*tmpl.MissingError)(nil); errors.As(err, &m) {
			return nil, m
		}
		return nil, WrapRefusal("column", err, "column of family %s", e.Family.Name)
	}
	if q = x.Buf[start:len(x.Buf):len(x.Buf)]; len(q) > maxQualifier {
		return nil, tmpl.Refuse("qualifier_size", "a column name in family %s has %d bytes, Bigtable takes %d",
			e.Family.Name, len(q), maxQualifier)
	}
	return q, nil
}
