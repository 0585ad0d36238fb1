// Package limit decides what limits a table now: one word for what an operator has to change or buy
// to make it faster.
//
// Four times a second the process that owns a table looks where its changes wait. A Window holds
// the looks of the last seconds, Facts sums them up, and Judge returns the word:
//
//	window.Add(limit.Look{Sink: sink.Place(now), Reading: ingest.Place(now, parked), …})
//	facts, known := window.Facts()
//	by := limit.Judge(&facts)
//
// A look costs some microseconds for a table, and nothing for a change: it reads what the parts of
// the table know about themselves. What limits is the last place on the way of the changes at which
// they wait. What comes before it is held up by it: a full log, for example, when Bigtable is slow.
//
// Files, from the top down:
//
//	judge.go   from facts to the word
//	window.go  the looks of the last seconds, and what they sum up to
//	place.go   where the changes of a table wait
//	word.go    the words, and what each tells an operator to do
//	way.go     how many changes a table can reach, by what its changes meet
package limit
