// Package ir holds the compiled program of a mapping: rules, row plans, and emitters, which are the entries under
// `cells`. Package compile makes it, prove and lint check it, emit evaluates it for whole items, explain describes it.
//
// Each kind of source under `cells` is a small type in a file source_*.go. It answers which attributes its cells hold
// (Attributes, Decoded) and evaluates itself into an Eval; which columns may be written is answered by Emitter.Columns.
// A program is immutable once it is compiled; an Eval belongs to one goroutine.
//
// Files, from the top down:
//
//	draft.go            a program while it is compiled, with the problems met so far
//	program.go          the program, what it is compiled for and what it documents
//	rule.go             rules and row plans
//	condition.go        conditions of rules, and which rule takes an item
//	when.go             conditions as CEL expressions
//	source_attr.go      attr, attrs; flattened maps
//	source_members.go   map, list, set
//	source_document.go  doc
//	source_const.go     const, and the type sidecar
//	cells.go            the evaluation that sources append their cells to
//	emitter.go          what all kinds of sources have in common; the columns they may write
//	cell_time.go        the time of cells
//	attributes.go       sets of attributes
//	family.go           column families
//	limits.go           limits of Bigtable, names of the meta families
//	refusal.go          refusals with their place
package ir
