// Package heartbeat says which items of a table are heartbeats: items that the replicator itself writes, so that their
// records prove how far each shard has been read. They are no part of the table's content: nothing that reads items or
// records hands them out.
//
// An item is a heartbeat if its partition key is one of the configured ones and it has the attribute Attr. So an item
// of the user under the prefix is an item like any other.
//
// Files, from the top down:
//
//	put.go   the write of a heartbeat
//	keys.go  the keys of heartbeats, and what tells heartbeats from other items
package heartbeat
