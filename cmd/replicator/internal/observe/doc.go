// Package observe finds out from the tables' logs how the tables are: the status, and whether everything that was
// written before a moment is in Bigtable. It needs no running daemon; where one answers, it adds what only a daemon
// knows.
//
// Files, from the top down:
//
//	await.go    the status now, and the status once everything before a moment is applied; both try again
//	observe.go  the status of every table from its log
//	daemon.go   what the daemon says about itself
//	applied.go  decides from the states of the logs whether everything before a moment is applied
package observe
