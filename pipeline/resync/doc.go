// Package resync brings items to Bigtable that are read from the table itself, not from its stream:
// items that are older than the stream (a copy), and items with rows that may be wrong.
//
// Each item goes the same way: it is read with strong consistency, then it waits until the stream
// has been applied past that reading, then it is written in the item's lane (apply.Sink.Resync)
// with a version a minute below the reading. A change that the reading lacks has a higher version
// and wins, before or after; a change that the reading has was applied before. So no reader of
// Bigtable observes an item step back, and no snapshot of the table is needed.
//
// A copy of an export may be delegated to workers outside the daemon (package delegation). Then the
// Copier reads nothing: it follows them, and copies what they leave.
//
// Goroutines of a Copier: readers take the part that is due first and read one page of it; each
// page has a goroutine that waits for the proof and writes its items, as many at once as Bigtable
// takes; one goroutine stores the marks, one adjusts the pace. The parts are shared under a mutex;
// all other state is used by one goroutine.
//
// Files, from the top down:
//
//	whole.go     compares the whole table and repairs it
//	requests.go  serves the requests of commands for single items
//	gaps.go      orders a resync where gaps heal by themselves
//	foreign.go   deletes cells that belong to no item, at a request
//	inwork.go    requests that are being done, side by side
//	naming.go    finds the rows of items in tables with keys that do not determine the rows
//	delegated.go follows a copy that workers make: their order, beats, marks
//	closing.go   ends the work of workers
//	takeover.go  takes over what workers have marked, and writes what they hand back
//	copy.go      one copy: reading, waiting
//	write.go     writes the pages of a copy, or pauses it
//	ask.go       requests an export from DynamoDB and waits for it
//	marks.go     stores how far a copy has come
//	pausing.go   why a copy pauses itself
//	progress.go  progress of a copy and of a resync, for status and logs
//	scan.go      reads the items of a scan
//	export.go    reads the items of an export
//	parts.go     the parts of a copy, shared among its goroutines
//	pages.go     pages in memory, compressed
//	items.go     single items: read, waited for, written
//	hand.go      how many single items are read and not written yet
//	pace.go      how many items a copy writes at once, and how many rows a second
//	options.go   what copies and resyncs need from their table and the process
//	metrics.go   Prometheus metrics of copies
package resync
