// Package guarded compares rows of the target, which carry guards, with what items should have in them. For each cell
// that no item explains it finds the item that owns the cell, as far as the guards show that.
//
// Goroutines: none. Nothing but a Families is safe for concurrent use.
//
// Files, from the top down:
//
//	bigtable.go  the target in Bigtable
//	row.go       compares a row with all its items
//	item.go      compares a row with one of its items
//	standing.go  what a cell is that no item explains, by all guards of its row
//	guards.go    the guards of a row, and which item owns a cell
//	retired.go   cells that may be left from a retired table
//	project.go   what the target should hold of an item
//	cells.go     the cells of a row
//	show.go      cells, rules and entries by name, for people
//	target.go    the tables and the target, as their users provide them
//	kinds.go     the kinds of differences
package guarded
