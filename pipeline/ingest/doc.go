// Package ingest brings the changes of one table from its shards into its log, for one life: it reads pages, stores
// them with their positions, keeps the shard graph, beats, stores the sinks' marks, and trims the log.
//
// Four kinds of goroutines: the write loop (Ingest.Write) alone appends to the log and owns the
// state that the log adds up to; the readers' loop (Ingest.Read) owns the pool of shards and what
// waits for reserved versions, and starts a goroutine for each shard that waits for its children,
// gap or reservation; the lister (Ingest.List) lists the shards from the service; the sinks call
// Append. They meet in the handoff: its channels carry pages and requests to the write loop, and
// shards to the readers. The lister's summary of the state has a mutex.
// A soft shutdown ends the context of Read and List. Read closes the handoff's drained channel when
// it returns without an error; then the write loop stops taking pages, starts the drain of the
// sinks, stores marks and beats until they are done, and releases the log. A hard shutdown ends the
// context of Write: it returns at once, and the next life goes on from what is stored.
//
// Files, from the top down:
//
//	ingest.go       the goroutines of a life: read, list, write
//	drain.go        the end of the write loop: apply the rest, store the marks, release the log
//	writer.go       the write loop: beats, marks, trims, and what a full log does to them
//	frames.go       pages become frames of the log
//	traced.go       the traces of stored frames
//	halts.go        halts that are over
//	entries.go      requested entries, checked against the state; what changed is published
//	readers.go      shards are read, pages and gaps passed on
//	confirm.go      what the service denies about shards is confirmed by listings
//	reservation.go  versions stay below what is reserved in Bigtable
//	lister.go       the shard graph
//	streams.go      the end of the table's stream, and a new one after it
//	prove.go        waits until everything up to a time is applied (protocol.Proof: when it is)
//	heartbeats.go   writes heartbeats for one life of a table
//	planner.go      which heartbeats to write
//	watermarks.go   how far empty reads show that open shards are read
//	handoff.go      what passes between these goroutines
//	place.go        where changes wait, for status
//	options.go      what ingest needs to know about its table
package ingest
