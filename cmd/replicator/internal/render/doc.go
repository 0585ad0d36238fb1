// Package render formats the results of commands for people: the status as a sentence and a table, the steps from an
// item to its cells.
//
// Files, from the top down:
//
//	explain.go  the steps from an item to its cells
//	check.go    the rules of a mapping, and what becomes of the attributes
//	schema.go   what a Bigtable instance lacks
//	status.go   the status, in a sentence and a table
package render
