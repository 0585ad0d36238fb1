// Package render formats the results of commands for people: the status as a sentence and a table,
// the steps from an item to its cells.
//
// Files, from the top down:
//
//	checkpage.go  what a check found, as a page to share
//	checked.go  the same as text
//	capacity.go how much a deployment carries, and what limits it
//	explained.go why an item or a row looks as it does
//	explain.go  the steps from an item to its cells
//	check.go    the rules of a mapping, and what becomes of the attributes
//	schema.go   what a Bigtable instance lacks
//	mapping.go  what a changed mapping does to the rows
//	repaired.go what a repair did
//	kept.go     what is kept of a table that is retired
//	gaps.go     gaps, and what they mean for the rows
//	progress.go how far copies and resyncs are, as bars or lines
//	bars.go     draws a bar for each thing in progress, under the lines of a log
//	letter.go   one dead letter, with its item
//	asked.go    dead letters that were tried again, items that were resynced
//	status.go   the status, in a sentence and a table
//	cost.go     what tables cost in a month
//	archived.go what an archive holds, and what was restored from it
//	archive.go  how far the archive of a table is
//	clock.go    times, in UTC
//	rehearsal.go  what a rehearsed cutover has shown
//	count.go    a number with its noun
package render
