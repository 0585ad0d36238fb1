// Package transform turns a change of an item into the rows and cells for Bigtable and the events
// for the archive.
//
//	mapping, problems := transform.ParseMapping("orders.yaml", text)
//	table := transform.Table{Source: "Orders", Target: "orders", Schema: schema, Mapping: mapping}
//	program, more := transform.Compile(table)
//	rows, err := program.Project(item)        // what Bigtable holds of an item that is up to date
//	err = program.Change(&decoder, c, &write) // the rows that a change enters and leaves
//
// The program is nil where a problem is an error. A *Refusal means that the mapping does not take
// the item: its change becomes a dead letter. Coalesce unites waiting changes of one item, Resync
// fills a Write from an item that was read from the table itself, and Unmap turns rows back into
// items. ExampleCompile runs.
//
// A program's result depends on the change and the mapping alone: no clock, no I/O, no randomness
// (Rule 7), so a replay gives the same bytes. The package is the entry to those below it for the
// rest of the replicator.
//
// Below it, from the mapping file to the Write:
//
//	lang     the mapping language: YAML, patterns, templates as text
//	tmpl     compiled templates, with the set of texts that each can give
//	encode   the bytes of values
//	ir       the compiled program's data
//	compile  mapping → program
//	prove    the static checks that a mapping is safe
//	lint     warnings about what may cause trouble later
//	emit     items and changes → rows and cells, and rows → items
//	access   how rows answer reads of DynamoDB
//	edit     what a change of the mapping does to the rows that the old one wrote
//	steps    what a program does, step by step, for people
package transform

import (
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/access"
	"github.com/tailrace-cdc/replicator/transform/compile"
	"github.com/tailrace-cdc/replicator/transform/emit"
	"github.com/tailrace-cdc/replicator/transform/ir"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/steps"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// The inputs of Compile, and the problems that it reports.
type (
	Mapping = lang.Mapping    // a mapping file as its author wrote it; nil means the preset default
	Problem = problem.Problem // one thing that a mapping's author should know
	Table   = ir.Table        // what a program is compiled for
)

// The parts of the target table that a mapping requires.
type (
	Family      = ir.Family
	ReadPattern = ir.ReadPattern
	View        = ir.View
	Column      = ir.Column
)

// The results of evaluating a program.
type (
	Write      = emit.Write
	Item       = emit.Item
	Row        = emit.Row
	Cell       = emit.Cell
	Delete     = emit.Delete
	Event      = emit.Event
	EventClass = emit.Class
	Wipes      = emit.Wipes
	Owned      = emit.Owned
	Entry      = emit.Entry

	NamedColumn = emit.NamedColumn
	Refusal     = tmpl.Refusal // the mapping does not take an item, and why: the change becomes a dead letter
)

// The classes of archival events.
const (
	ClassTTL      = emit.ClassTTL
	ClassUser     = emit.ClassUser
	ClassInferred = emit.ClassInferred
	ClassHealed   = emit.ClassHealed
)

// The explanations that people are shown.
type (
	Steps      = steps.Steps
	Passed     = steps.Passed
	StepRow    = steps.StepRow
	StepCell   = steps.StepCell
	StepDelete = steps.StepDelete
	Use        = steps.Use
	RowReport  = steps.RowReport
	Lead       = steps.Lead
)

// Class is the way in which a row's earlier cells are replaced.
type Class = ir.Class

// The classes of a row: replace-row, by-key, by-diff.
const (
	ClassR = ir.ClassR
	ClassK = ir.ClassK
	ClassD = ir.ClassD
)

// The meta families of every target table: the items that a row holds, and those that it held.
const (
	LiveFamily = ir.LiveFamily
	DeadFamily = ir.DeadFamily
)

// ParseMapping reads a mapping file. All its problems are reported at once; the mapping may be
// compiled only if none of them is an error.
func ParseMapping(file string, data []byte) (*Mapping, []Problem) { return lang.Parse(file, data) }

// Readable returns a name or value as people read it: text where it is text, else hex, with the
// number where it is a 64-bit integer.
func Readable(b []byte) string { return steps.Readable(b) }

// Program is a compiled mapping for one table. It is immutable and safe for concurrent use.
type Program struct{ prog *ir.Program }

// Compile compiles one table's mapping. The program is nil when a problem is an error. The class of
// a row depends on all tables that write the same target: use CompileAll where there are several.
func Compile(t Table) (*Program, []Problem) {
	ps, problems := CompileAll([]Table{t})
	return ps[0], problems
}

// CompileAll compiles all tables of a configuration and proves across them which rows belong to one
// item alone. A table with errors has a nil program.
func CompileAll(tables []Table) ([]*Program, []Problem) {
	compiled, problems := compile.All(tables)
	out := make([]*Program, len(tables))
	for i, p := range compiled {
		if p != nil {
			out[i] = &Program{p}
		}
	}
	return out, problems
}

// Table returns what the program was compiled for.
func (p *Program) Table() Table { return p.prog.Table }

// Hash identifies the mapping by its content, not by its layout or comments: two programs with one
// hash give the same cells.
func (p *Program) Hash() [16]byte { return p.prog.Hash }

// SealsKeys reports whether a key attribute is listed under pii, so that the sink seals the keys in
// the guards' values.
func (p *Program) SealsKeys() bool { return p.prog.SealsKeys }

// Families returns the families that the target table needs, without the replicator's own two.
func (p *Program) Families() []Family { return slices.Clone(p.prog.Families) }

// NamedColumns returns the columns of all rows that have fixed names, in order.
func (p *Program) NamedColumns() []NamedColumn { return emit.NamedColumns(p.prog) }

// Reads lists the access patterns that the mapping documents.
func (p *Program) Reads() []ReadPattern { return p.prog.Reads }

// RulesOf returns the rules that may take items with keys that meet tests, and what the tests show
// of their captures.
func (p *Program) RulesOf(tests []access.Test) []access.Bound { return access.Rules(p.prog, tests) }

// Finder returns where the program's rows answer the reads of a form, with their verdict. declared is
// the entry of Reads that serves them, or nil.
func (p *Program) Finder(q access.Query, declared *ReadPattern) *access.Finder {
	return access.NewFinder(p.prog, q, declared)
}

// Views lists the materialized views that the mapping requires. The administrator creates them.
func (p *Program) Views() []View { return p.prog.Views }

// Change fills w with what one change does. The error is a *Refusal when the mapping does not take
// the item (the change becomes a dead letter), else the change is malformed. A Write without rows
// is no error: the mapping drops the item, or its deletion is ignored, or it never had rows.
func (p *Program) Change(d *change.Decoder, c *change.Change, w *Write) error {
	return emit.Change(p.prog, d, c, w)
}

// RuleOf returns the name of the rule that takes the item of a key, as typed JSON, with its newest
// image or nil; "" where none does or it cannot be told. It is for metrics: names are as many as
// the mapping has rules.
func (p *Program) RuleOf(d *change.Decoder, keys, image []byte) string {
	return emit.RuleOf(p.prog, d, keys, image)
}

// CanCoalesce reports whether several changes of one item may be united in one write. They may not
// where a family keeps a history, because its readers need every version.
func (p *Program) CanCoalesce() bool { return p.prog.Coalesces }

// Coalesce fills w with what several changes of one item do, given in version order: the rows of
// the last image at the last version. Every row that any of the images had is in the Write, so that
// moves A→B→C leave nothing in A or B. After a *Refusal, which is about one of the changes, apply
// them one by one.
func (p *Program) Coalesce(d *change.Decoder, cs []*change.Change, w *Write) error {
	return emit.Coalesce(p.prog, d, cs, w)
}

// Project returns the rows and cells of an item: what Bigtable holds when it is up to date. The
// error is a *Refusal when the mapping does not take the item. An item that the mapping drops has
// no rows.
func (p *Program) Project(img change.Image) ([]Row, error) { return emit.Project(p.prog, img) }

// Wipes returns the finder of the rows that a removal of another item may delete; nil when no rule
// has `on_remove: row`.
func (p *Program) Wipes() *Wipes { return emit.NewWipes(p.prog) }

// Archives reports whether deleted items may become archival events. If so, an archive must be
// configured.
func (p *Program) Archives() bool { return emit.Archives(p.prog) }

// Archive returns the archival event of a change: nil unless it deleted an item that the mapping
// archives. Its class is the cause of the deletion.
func (p *Program) Archive(d *change.Decoder, c *change.Change) (*Event, error) {
	return emit.Archive(p.prog, d, c)
}

// PlaceOf returns an event with only the place and time of a deletion, for a deletion that is not
// archived.
func PlaceOf(c *change.Change) *Event { return emit.PlaceOf(c) }

// Lossless reports whether every item can be turned back from its main row, and if not, why.
func (p *Program) Lossless() (bool, string) { return emit.Lossless(p.prog) }

// WhyLost returns why an item with these keys cannot be turned back from its main row; "" when it can.
func (p *Program) WhyLost(keys change.Image) string { return emit.WhyItemLost(p.prog, keys) }

// Unmap turns an item's main row back into the item. It is exact where the program is Lossless, and
// elsewhere leaves out what cannot be read back.
func (p *Program) Unmap(keys change.Image, cells []Cell) (change.Image, error) {
	return emit.Unmap(p.prog, keys, cells)
}

// Resyncable reports whether rows of class D (by-diff) can be repaired without an old image, and if
// not, why.
func (p *Program) Resyncable() (bool, string) { return emit.Resyncable(p.prog) }

// KeysShowRows reports whether an item's key alone shows every row that the item has or had.
func (p *Program) KeysShowRows() bool { return p.prog.KeyDecidesRule && p.prog.RowsByKey }

// Owned returns which columns of a row belong to an item, whatever it holds now or held before. It
// is exact where the program is Resyncable.
func (p *Program) Owned(keys change.Image, row []byte) (*Owned, error) {
	return emit.OwnedBy(p.prog, keys, row)
}

// KeyOfRow returns the canonical key of the one item that may have a row of class R; nil where the
// row is not of that class, or its key does not show the item's in clear.
func (p *Program) KeyOfRow(row []byte) []byte { return emit.KeyOfRow(p.prog, row) }

// Report lists what the program writes, in the order of its rules.
func (p *Program) Report() []RowReport { return steps.Report(p.prog) }

// RuleName is the name of a rule, and the line of the mapping where it begins; 0 where a preset
// made it.
type RuleName struct {
	Name string
	Line int
}

// Rules lists the rules in the order in which they are tried.
func (p *Program) Rules() (names []RuleName) {
	for _, r := range p.prog.Rules {
		names = append(names, RuleName{Name: r.Name, Line: r.Src.At.Line})
	}
	return names
}

// Explain explains the projection of an item.
func (p *Program) Explain(img change.Image) *Steps { return steps.Item(p.prog, img) }

// ExplainChange explains what one change does: rows, cells, deletes.
func (p *Program) ExplainChange(c *change.Change) (*Steps, error) { return steps.Change(p.prog, c) }

// ExplainKey explains what the key of an item alone decides: its rule where keys decide that, and
// its rows.
func (p *Program) ExplainKey(keys change.Image) (*Steps, error) { return steps.Key(p.prog, keys) }

// Hide removes from an item's explanation what neither its key nor the mapping shows: values, and
// captures, row keys, columns and cell times that are made of other attributes.
func (p *Program) Hide(s *Steps, img change.Image) { steps.Hide(p.prog, s, img) }

// Coverage returns how the mapping uses each attribute of an item.
func (p *Program) Coverage(img change.Image) []Use { return steps.Coverage(p.prog, img) }

// Leads returns the first capture or attribute in each row key of an item. A row key that begins
// with a salt has none.
func (p *Program) Leads(img change.Image) []Lead { return steps.Leads(p.prog, img) }

// Untyped reports whether some rule writes an attribute so that values of two types can look alike.
func (p *Program) Untyped(attr string) bool { return steps.Untyped(p.prog, attr) }

// Int64Only reports whether some rule refuses items in which an attribute is not a 64-bit integer.
func (p *Program) Int64Only(attr string) bool { return steps.Int64Only(p.prog, attr) }

// SharesCells reports whether the mapping acknowledges that two items may write one cell.
func (p *Program) SharesCells() bool { return steps.SharesCells(p.prog) }
