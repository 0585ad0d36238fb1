// Package ask sends requests to the replicator that owns a table: resync single items, or retry their dead letters.
// They go through the table's request stream, because only the owner writes rows.
//
// Files, from the top down:
//
//	resync.go    which items a command resyncs
//	letters.go   dead letters of a table, as requests for their items
//	heal.go      gaps of which the archive is to be healed
//	keys.go      keys of a file or of an incremental export, as requests
//	ask.go       sends requests and waits for their outcomes
//	progress.go  how far they are, for people
//	owner.go     whether a replicator owns the table, and lives
package ask
