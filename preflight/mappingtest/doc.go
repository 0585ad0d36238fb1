// Package mappingtest runs unit tests of mappings: a file with items and the cells that the mapping must make of them,
// for `replicator mapping test`. It needs no connection.
//
// Files, from the top down:
//
//	run.go     runs the tests of a file, and counts which rules they cover
//	outcome.go what a mapping makes of an item, as lines
//	file.go    the format of a test file
package mappingtest
