// Package retiring ends the replication of a table: it takes away what the replicator keeps of it. All steps can be
// repeated, and an interruption at any of them leaves the table fenced in its row, so that nobody writes its rows and
// the same command goes on.
//
// Files, from the top down:
//
//	retiring.go  what is kept, and the steps that take it away
//	refuse.go    why a table may not be retired
//	guards.go    the table's guards in its target
//	scratch.go   its files
package retiring
