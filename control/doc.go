// Package control watches and steers a pipeline from outside, through its logs: it reads the status
// of each table, appends the control entries by which commands order work from the owner of a log,
// and sends it requests for single items. Only the owner writes rows. It works alongside a running
// daemon, and reads and orders against the store of a stopped one.
//
// Files, from the top down:
//
//	await.go        the status now, and the status once everything before a moment is applied; both retry
//	observe.go      the status of every table from its log
//	applied.go      evaluate protocol.Goal for each table, and the error of a wait that is blocked
//	retry.go        dead letters of a table, as requests for their items
//	heal.go         gaps of which the archive is to be healed
//	keys.go         keys of the items that an incremental export names, as requests
//	keytext.go      keys as people type them
//	keyfile.go      reads files of item keys
//	requester.go    sends requests and waits for their outcomes
//	progress.go     how far they are
//	letters.go      opens and finds dead letters
//	orders.go       resyncs of whole tables that a command orders: by a table's name, or for gaps
//	awaitresync.go  waits for the end of a resync of a whole table
//	owner.go        whether a replicator owns the table, and lives
//	dump.go         the entries of a log as lines
//	upgrade.go      which formats the logs have, and how they are raised
//	log.go          the log of a table with its state, and what is appended to it
//	daemon.go       the status that the daemon serves
package control
