// Package retry applies dead letters again, for `replicator dlq retry`: item by item, in version order.
//
// Files, from the top down:
//
//	retry.go  the letters of a table, by item
//	item.go   the letters of one item
package retry
