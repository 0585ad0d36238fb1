// Package audit compares both sides of a target for a command, while writers write: all items with
// all rows, those that have changed since a time, or a sample. A comparison changes nothing.
//
// It keeps on disk what the last full comparison of a target found, and which items have changed
// since it began. So a later comparison reads only these items, and a cutover need not compare all
// of them behind its fence. Everything is in one directory of the target: last.json holds the
// result, and the folder that it names holds the keys of items and the cells that were not equal,
// in files of mode 0600. The result is replaced as a whole.
//
// A repair has the owners of the tables make the rows of items true that a comparison named, and
// settles these items again. It writes no rows itself.
//
// Files, from the top down:
//
//	repair.go         what is repaired, counted first and then repaired
//	repairitems.go    items of one table: asked for, and settled again
//	repairforeign.go  cells that belong to no item
//	repairselected.go what it is read from: differences, keys, or an export
//	repaired.go       what was found and done
//	since.go          compares only the items that have changed since
//	sampling.go       compares items that are drawn at random
//	draw.go           draws items of a table about evenly
//	full.go           compares all items with all rows
//	keeping.go        keeps what a full comparison found
//	workers.go        compares them on the machines of a distributed engine
//	workerexports.go  has the tables exported for that
//	confirm.go        ends doubts about copies in the logs
//	run.go            what one comparison is about
//	templates.go      the row templates of the mappings, by which differences are counted
//	room.go           what to do when the volume of a scratch directory is full
//	savedsince.go     the items that have changed since the kept comparison, and what makes it useless
//	recorder.go       records a full comparison while it runs
//	follow.go         reads the logs for the keys of changed items
//	saved.go          the kept result and its file
//	keys.go           keys of items with the rows that they are or were in, sorted on disk
package audit
