// Package verifying compares both sides of a target while writers write, and changes nothing.
//
// Files, from the top down:
//
//	since.go      compares only the items that have changed since
//	verifying.go  compares all items with all rows
//	keeping.go    keeps what a full comparison found
//	confirm.go    ends doubts about copies in the logs
//	templates.go  the row templates of the mappings, by which differences are counted
//	room.go       scratch directories whose volume is full
package verifying
