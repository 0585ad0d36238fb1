// Package tracing makes an OpenTelemetry trace of a frame: from the reads of its pages to the calls that made its
// changes durable.
//
//	frame ─┬─ GetRecords          one for each page
//	       ├─ append              until NATS has it on disk
//	       └─ apply bigtable      until each change of the frame is durable; `apply archive` likewise
//	          └─ CheckAndMutateRow   one for each attempt; of changes that were coalesced, in the newest frame's trace
//
// The trace id is the hash of the frame's entry, as `replicator queue dump` prints it: so the log carries no trace
// context, and a frame that is applied again, by another process too, is in the same trace. No span has keys or
// contents of items.
//
// Files, from the top down:
//
//	tracing.go  the spans of a frame
//	ids.go      their ids
package tracing
