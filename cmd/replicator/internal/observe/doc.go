// Package observe reads from the tables' logs the status of each table, and whether everything that was written before
// a moment is in Bigtable. It needs no running daemon; if one answers, its own status adds what the logs do not hold.
//
// Files, from the top down:
//
//	await.go    the status now, and the status once everything before a moment is applied; both retry
//	observe.go  the status of every table from its log
//	daemon.go   the status that the daemon serves
//	applied.go  what is asked of protocol.Goal for each table, and the error of a wait that is blocked
package observe
