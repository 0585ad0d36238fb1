// Package lint looks for what compiles and hurts later: rules that nothing reaches, conditions that were meant
// otherwise, row keys that make a table slow or show personal data, access patterns that no row serves. It is run on a
// draft before and after the proofs, and adds to the draft's problems.
//
// Files, from the top down:
//
//	lint.go         the entries, and checks of single rules
//	acknowledge.go  warnings that the author knows about
//	reads.go        access patterns
//	views.go        materialized views
//	range.go        ranges of rows
//	match.go        conditions that overlap, or that no item can meet
//	names.go        references that were hardly meant as attributes
//	personal.go     personal data in the names of rows and columns
//	rows.go         row keys
//	columns.go      attributes that are written twice
//	families.go     the number of families, and histories whose versions no family keeps
package lint
