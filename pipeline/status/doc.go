// Package status computes the status of a table from its log, the time, and the state that the
// owning process holds beside the log. The daemon and the status command use the same function.
//
// Files, from the top down:
//
//	watched.go   the details of a table, while its page is open
//	detail.go    shards and gaps of one table, for its page
//	status.go    what was seen at a look at a table, and the status at a moment after it
//	unready.go   why a table is not ready
//	rehearsed.go what rehearsals of cutovers have shown
//	recent.go    what a table did in the last minutes, how much waits, and what limits it
//	cost.go      what a table, and all of them, cost in a month
//	whole.go     the status of a whole pipeline, from the statuses of its tables
//	verdict.go   whether all is well, and if not what it is, since when, and what to do, in one sentence
//	tracker.go   since when a process has observed each trouble
//	rules.go     what is wrong with one table, in the order of what matters most
//	gone.go      tables that no selection chooses, tables of other replicas, and the text when all is well
//	fence.go     the fence of a cutover, and what was written behind it
//	steps.go     what to do about each finding
//	losses.go    halts, gaps and resyncs in a status, in words
//	runbook.go   the page of the documentation about each state
//	events.go    what happened to a table or a service, for the timeline
//	reason.go    why a table is not ready: codes, and texts for people
//	table.go     the status as JSON
//	report.go    the log line of a table, once a minute
//	services.go  which services fail, and since when
package status
