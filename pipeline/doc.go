// Package pipeline runs the life of each table: it claims the table's log, starts reading into it
// (package ingest) and applying it to the sinks (package apply), decides with package outcome what
// an error means, and shows how the table is.
//
// A Pipeline runs its tables side by side. Each table has one log, and one life at a time: claim
// the log, read shards into it, apply it to each sink in order, store how far that is, trim what is
// not needed. When memory and store may differ, the life ends, and the next one goes on from what
// is stored (Rule 4).
//
// Goroutines and what they own:
//
//	table.run       the table's fields, from one life to the next; the log's writer outside of a life's work
//	write loop      the log's writer and with it the state of the log; how full the log is (ingest.Write)
//	parts of a life what table.work lists, each with the stage in which it ends (package life)
//
// Every other goroutine, health and metrics among them, reads only the newest snapshot of a table,
// and the reservation of staterow.Row.
//
// Start: describe the table, fold its log, read the row in Bigtable (or go on without it, when the
// log proves itself), claim the log, store the first listing, then work. Soft shutdown: the context
// of Run ends, and each life is left: see package life. Hard shutdown: Periods.Shutdown is over, or
// something failed; every context ends, and what was in hand is read or applied again by the next
// life.
//
// Files, from the top down:
//
//	pipeline.go     a pipeline and its tables
//	tables.go       tables that come and go while a pipeline runs
//	balancing.go    shares tables with the other processes of the pipeline, and announces them
//	health.go       liveness, readiness and the status of the pipeline
//	rehearsed.go    what commands tell of rehearsed cutovers
//	metrics.go      gauges, computed when they are scraped
//	pasthour.go     the charts of the last hour, over a restart
//	detail.go       the content of the pages: what is published while one is open, and what happened
//	gauges.go       their names
//	table.go        one table: one life after the other
//	work.go         the parts of a life
//	leaving.go      giving a log up: to another process, halted, or while paused
//	start.go        from the table's name to a claimed and started log
//	archive.go      the sinks of a table, and its archive
//	archivedonly.go tables without a target
//	verify.go       the continuous comparison of table and target
//	heartbeats.go   heartbeats, which prove that idle shards are idle
//	copies.go       where the items come from that are older than the stream
//	delegating.go   what workers get of the table that copy it
//	cluster.go      a fail-over to another cluster of Bigtable
//	heal.go         deletion of cells that belong to no item
//	accept.go       replaces the mapping by an accepted one, and an older format by a newer one
//	recover.go      a new life of a table after its log is lost
//	standby.go      waiting for a log that another process owns
//	premises.go     settings of outside systems that a table relies on
//	rowwatch.go     the pipeline's row of the table, and what it notes of the log
//	beating.go      beats while something slow runs before the write loop
//	looks.go        where its changes wait, four times a second
//	view.go         what a table's goroutines publish about it, and its status
//	reach.go        how many changes a second it can reach
//	usage.go        what it used of the clouds in the last hour
//	snapshot.go     what is known of a table at one moment
//	report.go       a line a minute about it in the process's log
//	families.go     which column families the mappings write, as far as they are compiled
//	env.go          what all parts of a table use and none changes; the tables now
//	options.go      the configuration of a pipeline
//	periods.go      the times of the protocol, and their defaults
package pipeline
