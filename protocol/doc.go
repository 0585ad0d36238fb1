// Package protocol decides what the replicator may do and what it may claim, from states and times
// that it is given. It calls nothing: no clock, no server, no file. The daemon, the commands, the
// status page and the simulation of the protocol call the same functions, so a question has one
// answer (Rule 14).
//
// What follows from the state of a log alone is a method of checkpoint.State. A function stands
// here if it also needs a time, an answer of an outside system or the state of another log. Its
// result is a value with a code. Callers make texts for people from the code, and never branch on a
// text.
//
// Premise is the value for a setting that an outside system holds. The settings of JetStream
// streams are judged in package queue, because that judge needs the types of the NATS client; it
// returns a Premise, too.
//
// Files, from the top down:
//
//	goal.go       is everything that was written applied, and what stands in the way
//	proof.go      is everything up to a time applied
//	gone.go       is a shard gone
//	streamend.go  has a stream ended
//	alive.go      is the owner of a log alive, and for how long is another one awaited
//	claim.go      may a log be claimed from another process, and may its owner still write
//	start.go      which floor a life has, and which copy a log needs
//	reading.go    which version an item has that was read from the table, and for how long it may be written
//	export.go     which version the items of an export have, and whether it may be copied beside a stream
//	clock.go      how long ago something was, by both clocks of a process
//	pass.go       what a pass over a log does with an entry
//	parts.go      Rule 1: which part of a copy is read next, and up to where it is durable
//	tracker.go    Rule 1: up to where everything is acknowledged
//	batch.go      which changes that wait become one write
//	logcopy.go    is a log an older copy of itself
//	letters.go    do the dead letters of an item follow a reading of it
//	families.go   tables, families and app profile of Bigtable
//	lifecycle.go  rules of the archive's bucket that delete objects
//	premise.go    a setting that is not as it must be
package protocol
