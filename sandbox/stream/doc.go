// Package stream is the sandbox's DynamoDB Streams. It turns committed changes into records on shards, keeps them for
// 24 hours of the sandbox's clock, and answers the four operations of the Streams API as the service does, or with the
// faults that were injected.
//
// A table's key space is divided into partitions by key hash, and each partition has one open shard. A record is
// encoded once, when its change is committed, and copied into pages from then on.
//
// Locks, in the order in which they are taken: Engine.mu covers which streams and shards there are, a shard's mu covers
// its records, Faults.mu the faults in force.
//
// Files, from the top down:
//
//	handle.go    one operation: body in, reply out
//	list.go      ListStreams, DescribeStream
//	records.go   GetRecords
//	iterator.go  GetShardIterator, and the text of iterators
//	save.go      all streams to a file and back
//	engine.go    the engine: a table's stream is enabled, disabled, described
//	commit.go    a change goes to its shard and to the ledger
//	lineage.go   streams and their shards: splits, rotations, retention
//	shard.go     one shard's records, in segments
//	encode.go    one record as GetRecords carries it
//	faults.go    the faults that can be injected
//	numbers.go   sequence numbers, times and hashes
//	errors.go    the service's errors
package stream
