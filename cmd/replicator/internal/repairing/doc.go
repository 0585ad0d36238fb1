// Package repairing has the differences that a comparison found repaired by the owners of the tables, and says what is
// true afterwards. It writes no rows itself.
//
// Files, from the top down:
//
//	repairing.go  what is asked for: from a file of differences, or a file of keys
//	items.go      items of one table: asked for, and settled again
//	foreign.go    cells that belong to no item
//	result.go     what was found and done
package repairing
