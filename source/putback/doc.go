// Package putback writes archived items back into their table, never over an item that exists. Items are sent in the
// typed JSON in which they were archived, so that every type and every digit arrives.
//
// Files, from the top down:
//
//	writer.go  conditional writes, at a limited rate, with retries
//	ttl.go     what becomes of the attribute by which items expire
//	item.go    what a write of an item costs, and whether two items are equal
package putback
