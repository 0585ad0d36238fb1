// Package verify compares source tables with Bigtable, cell by cell, as an application reads them.
// Versions are not compared, because a migrated application does not use them.
//
// The source's items are unordered and several may share a row. So their projection is sorted
// first, in runs on disk when it is large, and then merged with one ordered reading of the target.
// Memory is bounded whatever the size of the tables.
//
// Both sides are written to meanwhile, so a comparison goes in four steps:
//
//	Full      finds candidates: items, and rows of the target, that may differ. It reads the guards of the rows too:
//	          they show the owner of a cell that no item explains
//	Look      decides about the candidates that are equal by now, between two strong readings of the item
//	Settle    decides about each other candidate by strong readings of the item around a proof that the target has
//	          every change up to the first one
//	Resyncer  has the differences repaired, settles them again, and lists what is still not proven equal
//
// A cell of the target that no item explains is one of these: a difference of the item that a guard
// of its row shows as its owner; kept, if it may outlive its item; unproven, if the mapping has
// columns that do not show to which item they belong; else foreign. Families outside of the mapping
// are never looked at.
//
// Goroutines: Full reads Options.Readers parts of the source at once, and returns when all readers
// have ended. Everything else runs in the goroutine of its caller.
//
// Files, from the top down:
//
//	resync.go    settles all candidates of a full comparison, and has the differences repaired
//	resynced.go  what that did
//	check.go     settles all candidates and changes nothing
//	again.go     has the cells without a known owner compared again
//	recheck.go   compares them again, once the target has every change up to the first comparison
//	unowned.go   compares again the cells without a certain owner
//	settle.go    decides about items while both sides are written to
//	bylog.go     items that change all the time, compared with the log
//	ranged.go    items that were read before, with the rows of a range
//	judge.go     compares an item with its rows
//	cells.go     lists the cells in which they differ
//	full.go      all items with all rows: reads the source in parts
//	ranges.go    the same on the machines of a distributed engine: one range of the target, and the findings of all
//	merge.go     the merge of Full
//	projection.go the records of the items, by row
//	findings.go  what Full found, on disk
//	openlist.go  the list of what is not proven equal, in a file of mode 0600, because it names rows and keys
//	shared.go    names of package guarded that this package shares with its callers
package verify
