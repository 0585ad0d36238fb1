// Package archived has the commands that look at the archive of a table from outside: what is there, whether it is what
// the manifests say, and which events it holds. They need the store alone; the table's log is asked for the end of the
// chain of manifests. One command writes: restore brings items back into DynamoDB.
//
// Files, from the top down:
//
//	commands.go  archive list, verify, query: flags and printing
//	restore.go   archive restore: flags, and whether the table may be written to
//	bringback.go the newest event of each item, back into its table
//	restored.go  what was restored, in words
//	newest.go    the newest event of each item
//	verify.go    compares an archive with its manifests, and says what was found
//	list.go      the hours and their objects
//	query.go     the events of a time, a class, an item
//	ddl.go       statements for query engines
//	key.go       the item that a query asks for
//	times.go     the times of a question
//	open.go      the store, and the end of a chain
package archived
