// Command replicator carries the changes of DynamoDB tables into Bigtable.
//
//	        DynamoDB Streams                      one process, one pipeline, any number of tables
//	               │ raw pages
//	┌──────────────▼──────────────────────────────────────────────────────────────────────────────┐
//	│ source   shard graph, iterators, pace        config   one strict file                       │
//	│    │ versions, frames                                                                       │
//	│ queue    one log per table: JetStream, ◄──── marks, beats, pause, resume                    │
//	│    │     embedded or external; one writer    checkpoint   state = fold(log)                 │
//	│    │ read in order from the sink's mark                                                     │
//	│ pipeline lanes by item key ──► transform     the mapping, compiled                          │
//	│    │ writes                    │ events, refusals                                           │
//	│ sink/bigtable              sink/archive      dead letters          admin   metrics, health  │
//	└────┼───────────────────────────┼───────────────────────────────────────────┼────────────────┘
//	     ▼ CheckAndMutateRow         ▼ objects by hour, a subject                 ▼ :9464
//	 Bigtable                     archive                                     Prometheus, probes
//
// Each subcommand has a file of its own: flags and printing. A package below internal does the
// work. The commands that look at a running daemon or tell it what to do (status, queue, dlq, gaps,
// pause, resume, copy, repair, mapping) read and write its log: there is no other interface, so
// they work against a stopped daemon as well. Only what writes rows needs the daemon: dlq retry and
// repair of single items ask it through the requests beside the log.
//
// Packages below, from the top down:
//
//	internal/cli        what all commands share: global flags, configuration, output, exit code
//	internal/render     text for people: status, explain, rules
//
// Files, from the top down:
//
//	main.go       signals, and one command line
//	root.go       all commands under one
//	demo.go       demo: everything on this machine
//	init.go       init: a proposal from live tables
//	sandbox.go    sandbox: DynamoDB, Bigtable and NATS on loopback
//	run.go        run: the daemon
//	run_dry.go    its --dry-run: reads streams and applies mappings, without a log and without Bigtable
//	run_dry_print.go  what a dry run prints
//	check.go      check: prints what package preflight finds
//	schema.go     schema: what Bigtable must have
//	status.go     status: what is in Bigtable and what is not
//	status_cost.go  status --cost: what each table costs in a month
//	verify.go     verify: compares both sides
//	verify_groups.go  its counts by rule and by prefix
//	verify_html.go  its page
//	explain.go    explain: why an item or a row looks as it does
//	shadow.go     shadow: how the application reads, between it and DynamoDB
//	shadow_report.go  shadow report: what several fronts have seen; shadow engine: the process that counts
//	queue.go      queue: the logs as lines
//	pause.go      pause and resume: through the log
//	copy.go       copy: pauses, resumes and cancels a backfill
//	gaps.go       gaps: what was lost before it was read
//	gaps_archive.go  its heal, for the archive
//	resync.go     resync: an alias of repair
//	repair.go     repair: makes rows true again, and reports what is true afterwards
//	repair_plan.go  what its flags and the flags of its aliases select
//	repair_items.go  it, over single items
//	repair_tables.go  it and gaps heal, over whole tables
//	gaps_find.go  gaps in the logs, by their ids
//	dlq.go        dlq: list and drop dead letters
//	dlq_show.go   its show: one dead letter, and its item
//	dlq_retry.go  its retry: applies dead letters again
//	archive.go    archive: what is there, is it whole, which events
//	archive_restore.go  its restore: brings items back
//	archive_open.go  what its commands work on
//	archive_ddl.go  its ddl: statements for query engines
//	mapping.go    mapping: what a changed mapping does, and accepts it
//	mapping_tests.go  its test: runs unit tests of mappings
//	recover.go    recover: a new life after a lost log
//	cutover.go    cutover: proves at a fence that both sides are equal
//	table.go      table retire: the end of a table's replication
//	config.go     config: the schemas of the files
//	upgrade.go    upgrade: the format of the logs
//	version.go    version, and the man pages
//	completing.go  completes tables, dead letters and words in a shell; not what takes more than two seconds
//	output.go     the files that commands write
package main
