// Package demo is `replicator demo`: a sandbox in this process, tables that hold items before the
// replicator starts, applications that write to them, a stream that splits and rotates its shards,
// the replicator as a process of its own that is killed and started again, and in the end a
// comparison of every item with every row, cell by cell, and a cutover with its certificate.
//
// Files, from the top down:
//
//	stage.go     the steps of the demo: set up, run, drain, end
//	certify.go   cuts a table over, as a user would
//	summary.go   compares every item with every row, and sums up
//	progress.go  the replicator's progress while the applications write
//	old.go       the items that the tables hold before the replicator starts
//	probe.go     measures the lag from a write to its row
//	child.go     the replicator as a process of its own
//	process_unix.go     its signals
//	process_windows.go  its console events, and how a killed process is told
//	stream.go    splits and rotates the shards
//	gallery.go   the applications of the worked examples
//	items.go     the worked examples, and the items that they write
//	writer.go    the application that writes the catalogue
package demo
