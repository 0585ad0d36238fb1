// Package worker copies the files of an export into Bigtable, under an order of the daemon that
// owns the table. It contains no engine: package pipe runs it in Apache Beam.
//
//	w, err := worker.Shared(place)      // one for each process: the order, its mappings, the export, one client
//	done, err := w.File(ctx, number)    // returns when every item of the file is durable, and the mark too
//
// Engines run files twice, beside each other, and after a job was cancelled. That is harmless: a
// row that holds an item at the order's version or later is left as it is, and every attempt of
// every write asks the lease on the order first. A file counts as copied by its mark alone, which
// the daemon reads. What an engine reports of a job proves nothing.
//
// Nothing of an item leaves the process but for its cells: an item that is refused is handed back
// by the number of its line.
//
// Files, from the top down:
//
//	file.go    one file, from its lines to its mark
//	item.go    one item
//	worker.go  what the files of a process share
//	place.go   where the order is, and its export
//	compile.go the mappings of a target
//	lease.go   may the process write now
package worker
