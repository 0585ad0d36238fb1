// Package ledger gives the messages of an archive's stream their meaning. The stream holds the events of a table that
// are to be archived, and what became of them: which object they are in, how far the subject is, which hours are
// closed. Like the log, it is a chain of entries, each with the hash of the one before, and its state is their fold.
//
// Files, from the top down:
//
//	batch.go     events on their way into an entry: which are new, and what they cover
//	state.go     the fold
//	snapshot.go  the state as entries
//	lost.go      the hours that may lack events
//	part.go      the events of a class in an hour that are in no object yet
//	forget.go    what of the state is too old to be needed
//	entry.go     the entries and their stored form
//	block.go     the events of an entry
package ledger
