// Package restore looks at the archive of a table from outside: what is there, whether it is what the
// manifests say, and which events it holds; and it brings archived items back into DynamoDB. It needs
// the store alone; the table's log is asked for the end of the chain of manifests.
//
// Files, from the top down:
//
//	bringback.go the newest event of each item, back into its table
//	table.go     whether the table may be written to
//	restored.go  what was restored
//	newest.go    the newest event of each item
//	verify.go    compares an archive with its manifests
//	list.go      the hours and their objects
//	query.go     the events of a time, a class, an item
//	key.go       the item that a query selects
//	times.go     the times of a query
//	open.go      the store, and the end of a chain
package restore
