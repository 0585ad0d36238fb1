// Package replay makes the reads of an application in Bigtable too, and compares.
//
//	r := replay.New(replay.Options{Reader: reader, Counts: counts, Tables: tables, Mismatch: show})
//	go r.Run(ctx)
//	r.Offer(reader.Of(operation, body), exchange) // never waits
//
// A read is replayed where the mapping has rows that serve it. The items of the answer are projected,
// and compared with the rows of the same read; so an encoding that loses something is no mismatch.
// What differs then may be on its way, so a first look reports nothing: the item waits until
// verify.Settler has decided, behind a proof that the target has every change. Only two findings need
// no proof, because no change can alter them: the mapping puts no row of the item into the range that
// is read, or it puts rows in another order than the answer has.
//
// Counts and errors have no key and no value. A Mismatch has the key.
//
// Files, from the top down:
//
//	replay.go  reads that wait, and the workers that replay them
//	compare.go one read and its rows
//	answer.go  the items of an answer
//	settle.go  the items that wait for a decision
package replay
