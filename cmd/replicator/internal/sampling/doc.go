// Package sampling compares random items of a table with their rows, while both sides are written to. It costs about a
// page of sixteen items for each item that is drawn, whatever the size of the table.
//
// Files, from the top down:
//
//	sampling.go  settles the items that were drawn, and counts what was found
//	draw.go      draws items from random segments
package sampling
