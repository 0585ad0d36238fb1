// Package kept keeps on disk what the last full comparison of a target found, and which items have changed since it
// began. So a later comparison reads only these items, and a cutover need not compare all of them behind its fence.
//
// Everything is in one directory of the target: last.json holds the result, and the folder that it names holds the keys
// of items and the cells that were not equal, in files of mode 0600. The result is replaced as a whole.
//
// Files, from the top down:
//
//	recorder.go  records a full comparison while it runs
//	since.go     the items that have changed since the kept comparison, and what makes it useless
//	follow.go    reads the logs for the keys of changed items
//	result.go    the result and its file
//	keys.go      keys of items with the rows that they are or were in, sorted on disk
package kept
