// Package heartbeat decides which heartbeats a table needs now, and writes them. Which shard a partition key falls into
// is in no reply of the service: it shows only when the key's record comes out of a shard. So keys are tried until each
// open shard has one, and again after shards have split.
//
// Files, from the top down:
//
//	run.go      writes heartbeats for one life of a table
//	planner.go  which keys to write
package heartbeat
