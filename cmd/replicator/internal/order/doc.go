// Package order reads the tables' logs for commands, and appends the control entries by which commands tell the owner
// of a log what to do. It works beside a running daemon, and against the store of a stopped one.
//
// Files, from the top down:
//
//	resync.go  waits for the end of a resync of a whole table
//	order.go   the log of a table with its state, and what is appended to it
package order
