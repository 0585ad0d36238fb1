// Package delegation has the values of a copy that workers outside the daemon make: the order that
// permits it, the lease on which each worker writes, and the marks of the files that are durable.
//
//	owner of the table                          process of a distributed engine
//	stores order, beats  ──► tailrace_state ──► reads the order: Lease.Note
//	reads marks          ◄── tailrace_state ◄── writes items while Lease.Judge allows it, stores marks
//
// A worker has no log. All that it may do follows from the order, which it reads again every
// ReadEvery. No engine stops all of its processes when a job is cancelled, killed or done. So the
// owner ends the work of an order in three steps: it stores the order as closed, waits for
// CloseWait, and appends to the log that the order is closed. Before that entry anything may still
// be written under the order; after it nothing is.
//
// Everything here is a pure function or a value: no clock, no call. Daemon, workers and the
// simulation of the protocol use the same ones. Package sink/bigtable stores the values.
//
// Files, from the top down:
//
//	order.go  the order, and what may replace it
//	lease.go  may a worker write now
//	mark.go   the marks of files
package delegation
