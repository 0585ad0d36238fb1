// Package sim runs the whole protocol in one goroutine, with virtual time: a table with a stream
// whose shards split and are trimmed, a log, several processes that read, store and apply, a target
// with conditional writes, and all that goes wrong between them. Every decision that matters is the
// code of the daemon; docs/protocol.md lists them, and what is simpler here.
//
// A history is the sequence of choices on its tape. It is drawn from a seed, replayed, shortened
// while it still breaks an invariant, or enumerated.
//
// Files, from the top down:
//
//	run.go         one history, and how it comes to rest
//	steps.go       what may happen next
//	bulk.go        the workers outside the daemon that copy the table
//	disasters.go   what goes wrong, and what operators do
//	process.go     one process: claim, recover
//	claims.go      when a process that waits may claim the log
//	ingest.go      its readers and its write loop
//	denials.go     what becomes of shards that the service denies
//	pages.go       pages and gaps in hand, on their way into the log
//	sink.go        its pass over the log, its lanes
//	letters.go     its dead letters, and their retries
//	whole.go       its resync of the whole table
//	copying.go     its copy of the table
//	follow.go      its copy by workers
//	append.go      its appends
//	storing.go     what the log's server stores, and what a fold reads
//	invariants.go  what must hold
//	continues.go   what an entry must not change, and what must be above it
//	waits.go       waits for everything that was written before, and what need not be in the log
//	readers.go     what plain readers of the target get
//	lies.go        what the service answers, true or not
//	table.go       the source table
//	shards.go      its streams
//	mapping.go     the mappings, and what a reader gets of an item (cells: the target)
//	log.go         the log's server
//	world.go       everything that a history happens in
//	clock.go       the clocks of a process, which may be suspended
//	branches.go    which seldom branches are counted
//	report.go      what was found
//	mutants.go     the defences that can be taken away
//	tape.go        choices
package sim
