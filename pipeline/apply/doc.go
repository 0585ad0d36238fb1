// Package apply brings the changes in a table's log to the table's sinks, and moves their marks.
//
// Each sink makes its own pass over the log: a goroutine reads entries and hands their changes to a
// target, which makes them durable and acks them; a protocol.MarkTracker turns acks in any order
// into the mark. When a pass fails, package outcome decides whether the sink tries again or halts,
// or whether the table's life ends.
//
// Goroutines of a pass: one reads the log (pass) and alone adds entries to the ack tracker; the target runs one
// dispatcher and a worker for each lane that has jobs, or one archiver; one ends the pass when the sink is drained. A
// lane's jobs and the maps of DeadLetters have a mutex each; everything else belongs to the goroutine that runs it. On
// a hard shutdown the context ends and calls in flight are dropped: their changes are applied again from the stored
// mark. On a soft one Drain is called, and Run returns when all entries up to the given one are durable.
//
// Files, from the top down:
//
//	sink.go         one sink: pass after pass, retried, halted, drained
//	resync.go       items read from the table itself, on their way into a lane
//	pass.go         one pass: entries of the log, unpacked and handed to a target
//	damage.go       entries of the log that cannot be read
//	lanes.go        the target Bigtable: changes dealt out to lanes by item
//	order.go        which jobs of a lane are next: changes of the stream before resyncs
//	place.go        where changes wait, for status
//	workers.go      how many workers each table may have, and for changes or resyncs
//	archived.go     dead letters of a table without a target
//	archiver.go     the target archive: events of TTL deletes, in batches
//	worker.go       the batch of a lane: changes of one item coalesced into one write
//	operation.go    a resync, in its lane
//	catchup.go      letters that are newer than what was put
//	copied.go       items that a copy could not write: one letter each
//	letters.go      the dead letters of the item that is resynced
//	fresh.go        whether what was read may still be written
//	published.go    events that the archive's subject refused
//	turns.go        the order of changes in tables that remove whole rows
//	quarantine.go   a row that Bigtable neither takes nor refuses
//	deadletters.go  refused changes, and the items that are dirty because of them
//	lettered.go     what is known of the dead letters of an item
//	breaker.go      more refusals in a row than changes can be at fault
//	classes.go      which deletions are archived
//	options.go      what the sinks need of their table and of the process
//	memory.go       the memory of changes between the log and the sinks
//	buffers.go      the buffers that they are unpacked into
//	metrics.go      what they count
package apply
