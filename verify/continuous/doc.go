// Package continuous compares a table with its target all the time, slowly, within a budget of read
// capacity units. It runs in the daemon beside the stream.
//
// There are two directions, and each takes half of the budget. Each goes through its side again and
// again; one walk through a side is a pass.
//
//	items  scans the table with eventual consistency and reads the rows that the items of a page should have
//	rows   reads the target in its order, and for each row the items that its guards name, with eventual consistency.
//	       It finds rows and cells of items that are gone or moved, and cells of no item
//
// What they see is only a candidate: either side may be behind. verify.Settler decides about it
// with strong readings around a proof. What differs is settled again after some minutes, so that a
// repair clears it.
//
// Goroutines of Verifier.Run: one walks, one settles. They share what is under the mutex.
//
// Files, from the top down:
//
//	runner.go    the comparison of one life: its position is stored, its differences are listed in a file
//	verifier.go  the walk, and which direction is next
//	items.go     the direction from the items to their rows
//	rows.go      the direction from the rows to their items
//	settle.go    candidates, and what is known to differ
//	status.go    the status for people and metrics
//	snapshot.go  what survives a restart
//	pass.go      how far a direction is
//	reads.go     reads of items within the budget, and the comparison of rows
//	options.go   what a Verifier needs
package continuous
