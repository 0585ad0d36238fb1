// Package explain finds out why rows look as they do: what an item is now, what the mapping makes
// of it, what Bigtable holds of it, which of its changes the log has, and what is still to come. It
// reads and changes nothing.
//
// Keys and values of items are shown only if the user asks for data. The requested key, the names
// of attributes, sizes, versions and times are always shown.
//
// Goroutines: none.
//
// Files, from the top down:
//
//	key.go      explains an item by its key
//	row.go      explains a row: the owners of its cells, and what items they turn back into
//	rowitems.go what is true of the items of a row
//	history.go  an item's changes in the log, its dead letters, the requests for it
//	stored.go   what Bigtable holds of an item, cell by cell
//	settle.go   compares items with their rows, with a proof where there can be one
//	verdict.go  one sentence about an item, and one about a row
//	names.go    names that show no data
//	subject.go  the files of an item or a record, with the steps of the mapping
//	plain.go     items that are written as plain JSON
//	result.go   what is found
package explain
