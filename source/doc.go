// Package source reads DynamoDB: it lists the shards of a stream, reads their records as raw pages,
// and reads items for copies and comparison. It and the packages below it are the only ones that
// use the AWS SDK for DynamoDB: source/raw makes the calls with replies that stay raw,
// source/export reads items from files in S3. source/heartbeat distinguishes the items that the
// replicator writes itself from all others, and source/putback writes archived items back.
//
//	Table ─► List / Children ─► Reader (one shard) ─► Page{raw records, versions, positions}
//	                              │ lease of memory, pace                       │
//	                              └──────────── Pool drives thousands ◄─────────┘ Release
//
// A page is the body of one GetRecords reply as it came: records are found in it by a lazy scanner,
// and only their keys are decoded. A Reader decides nothing about the shard graph: the caller
// decides which shard may be read, and from where. A position that cannot be read any more ends the
// Reader with a GapError, never with a silent jump.
//
// Goroutines: a Pool has one that schedules (Run) and one for each read under way, at most Options.Connections over all
// pools; both end before Run returns. A Reader has none. Its fields are used by one goroutine at a time: the caller of
// Next or, in a Pool, the scheduler while it reserves memory and the goroutine of the read; by none while the reader
// waits in the heap of due readers. Two parts are shared: progress, which the retention fuse reads, and the Lease of a
// page, which the page's consumer releases.
//
// Files, from the top down:
//
//	pool.go       many shards with few goroutines
//	read.go       one page of one shard: wait, call, stamp, advance
//	failed.go     what follows a failed read: a retry, a new iterator, a gap
//	probe.go      whether a stream may be read, and whether a shard exists
//	iterator.go   where a read begins
//	reader.go     the state of one shard's reader
//	listing.go    shards of a stream
//	scan.go       items of a table, page by page
//	items.go      items by their keys
//	batchreply.go the items of a raw reply to BatchGetItem
//	scanreply.go  the items of a raw reply to Scan
//	replykey.go   the position from which a scan goes on
//	heartbeats.go items that prove how far shards are read
//	exports.go    exports of a table to S3
//	bulk.go       loads from S3 into tables
//	table.go      requests the description of a table
//	describe.go   what a description holds
//	capacity.go   the read capacity that the readers of a table share
//	principal.go  the identity of the caller
//	sign.go       signs requests for the front of a shadow run
//	source.go     clients, the deadline and the report of a call
//	options.go    options and their defaults
//	metrics.go    metrics
//	page.go       a page, versions and key hashes
//	retention.go  how far shards are read: the retention fuse
//	pace.go       when a shard is read again
//	throttle.go   since when reads of a table are throttled
//	lease.go      the memory of one page
//	memory.go     the memory that pages may take
//	waiters.go    the queue of readers that wait for memory
//	errors.go     errors, their classes and hints
//	credentials.go  why there are no credentials, by provider
package source
