// Package cutover proves that a target holds what its source tables hold, at a fence behind which
// nothing is written to it, so that the application may move to Bigtable. All steps can be
// repeated: another process goes on with a cutover that was begun, because its state is in the
// tables' rows and logs.
//
// It also retires a table, which ends its replication: it takes away what the replicator keeps of
// it. An interruption at any step leaves the table fenced in its row, so that no replicator writes
// its rows and the same command goes on.
//
// Files, from the top down:
//
//	retire.go     what is kept of a table, and the steps that take it away
//	endworkers.go ends workers that copy the table
//	mayretire.go  why a table may not be retired
//	guards.go     the table's guards in its target
//	scratch.go    its files
//	rehearse.go   the steps without a fence, and how long they take
//	cutover.go    the steps
//	issue.go      the certificate
//	lull.go       the longest time of the last hour in which nothing was written
//	idle.go       whether heartbeats prove that nothing was written
//	quiet.go      waits until nothing is written to the tables any more
//	undo.go       takes the fence away
//	fence.go      raises it
//	changed.go    compares what has changed since the kept full comparison
//	verify.go     compares both sides under the fence
//	waivers.go    what is accepted by name
//	behind.go     what the logs hold behind the fence
//	refuse.go     why a cutover may not begin or end; looking at the logs again and again
package cutover
