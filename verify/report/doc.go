// Package report holds the report of a comparison of both sides, for people and scripts: counts and
// a verdict for each table, as JSON, as a sentence and as one HTML page. The page needs nothing
// else: no script, no font, no image. It follows the reader's choice of light or dark, and is made
// for phones too.
//
// Only a file of differences holds keys, rows and values, and a page where the user has asked to
// see data.
//
// Files, from the top down:
//
//	page.go         the whole page
//	bars.go         the bars of a table on it
//	diffs.go        the first differences on it, cell by cell
//	collect.go      takes the differences on their way to their file
//	report.go       the counts of a table and its verdict
//	sentence.go     both as one sentence
//	groups.go       differences by rule and by prefix
//	sample.go       how much a sample proves
//	differences.go  the file of differences
package report
