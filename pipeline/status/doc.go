// Package status says how a table is: a function of what its log shows, of the time, and of what a process that owns it
// knows beside the log. The daemon and the status command use the same function.
//
// Files, from the top down:
//
//	status.go    what was seen at a look at a table, and the status at a moment after it
//	losses.go    halts, gaps and resyncs in a status, in words
//	table.go     the status as JSON
//	services.go  which services fail, and since when
package status
