// Package lint finds constructs that compile but cause trouble in use: unreachable rules,
// conditions that are probably mistakes, row keys that make a table slow or show personal data, and
// access patterns that match no rows. It runs on a draft before and after the proofs, and adds what
// it finds to the draft's problems.
//
// Files, from the top down:
//
//	lint.go         the entry points, and checks of single rules
//	acknowledge.go  warnings that the mapping acknowledges
//	reads.go        access patterns
//	views.go        materialized views
//	range.go        ranges of rows
//	match.go        conditions that overlap, or that no item can meet
//	silent.go       what compiles and never does what its author meant
//	names.go        references to attributes that are probably mistyped captures
//	personal.go     personal data in the names of rows and columns
//	rows.go         row keys
//	columns.go      attributes that two entries write to one column
//	families.go     the number of families, and histories with versions that no family keeps
package lint
