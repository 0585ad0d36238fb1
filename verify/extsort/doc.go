// Package extsort sorts more records than fit in memory: sorted files on disk, called runs, and
// their ordered reading.
//
// A record has a row, a name within the row, and a value. Records are collected in parts, each by
// one Writer. A part survives its process: a manifest lists the part's files and records how far
// its source had been read. Blocks carry checksums, and a damaged file is reported with its part,
// so that only this part is made again.
//
// Records hold items in clear. Directories and files are readable by their owner alone.
//
// Goroutines: the package starts none. A Store may be used by several goroutines, each with its own
// part.
//
// Files, from the top down:
//
//	store.go   the directory with its parts
//	writer.go  collects the records of a part and writes them as runs
//	merge.go   reads the runs of all parts in one order
//	file.go    one run: blocks of records, front-coded and compressed, with checksums
//	room.go    the room that a file system has, and the error of one that has none
package extsort
