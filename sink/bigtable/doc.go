// Package bigtable makes writes durable in Cloud Bigtable, in any order, any number of times.
//
// Every row is written by one CheckAndMutateRow: if the row already holds this item at this version or
// later, nothing happens, else the item's cells are replaced. The server decides at the moment of writing,
// so a retry, a replay, a second owner, and a call that lands after its client gave up are all harmless,
// and after any doubt the answer is the same: send it again.
//
// What the decision rests on is stored beside the data, one cell per (row, item):
//
//	_tr_live:<item>  the item is in this row, at the version that is the cell's timestamp
//	_tr_dead:<item>  the item left this row at that version: a tombstone, collected after Options.Tombstones
//
// <item> is "i" in a row that one item owns, else 16 bytes of hash; the value of both is the source table,
// a NUL, and the item's canonical key, so that a sweep can find the item behind the cell.
//
// The package also keeps the small state table of the pipelines (state.go), compares and creates tables
// (schema.go) and reads rows back for the verifier (rows.go).
package bigtable
