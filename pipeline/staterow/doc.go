// Package staterow keeps the pipeline's row of one table, in Bigtable or in the archive's bucket,
// and returns why stored state is refused: a log, a row or a target that belongs to something else,
// or of which a part is missing.
//
// A log goes on only where its row agrees with it. The package also plans the one way out of a lost log, a new life.
//
// Files, from the top down:
//
//	recovery.go     what a recovery changes in the row
//	agree.go        the row and the log agree, or the log is refused
//	logcopy.go      a log that is an older copy, and a row that is gone
//	createlog.go    the log of a first start
//	row.go          the row: read, changed, and how far versions may run ahead
//	store.go        where the row is kept
//	bucketstore.go  the rows of tables without a target, in the archive's bucket
//	adopt.go        which pipeline owns a target, and targets with rows of other pipelines
//	refused.go      why stored state is refused
//	start.go        where the first life begins to read, as it is configured and as the log spells it
package staterow
