// Package status says how a table is: a function of what its log shows, of the time, and of what a process that owns it
// knows beside the log. The daemon and the status command use the same function.
//
// Files, from the top down:
//
//	watched.go   the details of a table, while somebody looks at its page
//	detail.go    shards and gaps of one table, for its page
//	status.go    what was seen at a look at a table, and the status at a moment after it
//	recent.go    what a table did in the last minutes, and how much waits
//	whole.go     the status of a whole pipeline, of those of its tables
//	verdict.go   whether all is well, and if not what it is, since when, and what to do, in one sentence
//	gone.go      what is said of tables that no selection chooses, of those of other replicas, and when all is well
//	fence.go     the fence of a cutover, and what was written behind it
//	losses.go    halts, gaps and resyncs in a status, in words
//	reason.go    why a table is not ready: codes, and texts for people
//	table.go     the status as JSON
//	report.go    what the line a minute says about a table
//	services.go  which services fail, and since when
package status
