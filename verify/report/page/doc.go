// Package page shows the result of a comparison as one HTML file that needs nothing else: no script, no font, no image.
// It follows the reader's choice of light or dark, and is made for phones too.
//
// Keys, row keys, column names and values are shown only where the user has asked to see data.
//
// Files, from the top down:
//
//	page.go     the whole page
//	bars.go     the bars of a table
//	diffs.go    the first differences, cell by cell
//	collect.go  takes the differences on their way to their file
package page
