// Package checkpoint is the pure core of the protocol: the entries of a table's log, and the state
// that they add up to. state' = state.Apply(entry). Beside the log only rows of tailrace_state are
// stored (package staterow).
//
// It does no I/O, reads no clock and depends on neither NATS nor AWS, so that every history can be
// folded, fuzzed and simulated as it is.
//
// Files, from the top down:
//
//	apply.go      State.Apply: what each kind of entry does to the state
//	check.go      State.CheckNext: which entries contradict the log
//	events.go     what happened to the table, for people
//	snapshot.go   snapshots: the state written in parts, and restored
//	stored.go     the JSON of a snapshot
//	packed.go     the compression of the states in snapshots
//	listing.go    listings split into parts, or reduced to what is new
//	graph.go      listings applied to the shards
//	doubt.go      copies of exports that DynamoDB could not confirm, and what ends that
//	resync.go     resyncs of the whole table
//	gaps.go       lost ranges of the source, accepted and waived
//	lineage.go    when a shard may be read, and when it is finished
//	fence.go      the fence of a cutover
//	work.go       what is still to be done until Bigtable has the rows of all items
//	copy.go       copies, by the owner or by workers; accepted mappings
//	halts.go      why sinks stopped, pauses, and when an owner stored something
//	watermark.go  the times up to which everything was read and applied
//	state.go      the state
//	index.go      an index for questions about all shards
//	stream.go     the streams of a table
//	shard.go      a shard and its loss
//	phase.go      how far the reading of a shard has come
//	expired.go    deletions by TTL counted by hour, and the end of the archive's manifests
//	proof.go      what heartbeats prove
//	rows.go       what entries do to rows apart from the changes in the log
//	chain.go      Rule 2: which message is the next entry
//	entry.go      the entries and their stored form
//	digest.go     the hash of an entry, and the nonce of a claim
//	kind.go       kinds of entries
//	format.go     the formats, which entry needs which, and what refuses an entry or a log
package checkpoint
