// Package page makes the status page from the status of a pipeline: HTML for browsers, without anything from outside,
// readable without its script. It shows what `status` shows and nothing of any item.
//
// Files, from the top down:
//
//	page.go     the front page, the page of a table, and their assets
//	front.go    a row per table
//	table.go    facts, gaps and errors of one table
//	lineage.go  the shards of a stream as a drawing of bounded size
//	chart.go    the last hour as lines
//	words.go    numbers and times as people say them
package page
