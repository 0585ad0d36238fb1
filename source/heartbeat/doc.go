// Package heartbeat identifies the heartbeats of a table: items that the replicator itself writes,
// so that their records prove how far each shard has been read. They are not part of the table's
// content: no reader of items or records returns them.
//
// An item is a heartbeat if its partition key is one of the configured ones and it has the attribute Attr. So an item
// of the user under the prefix is an item like any other.
//
// Files, from the top down:
//
//	put.go   the write of a heartbeat
//	keys.go  the keys of heartbeats, and the filter that separates them from other items
package heartbeat
