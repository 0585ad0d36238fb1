// Package protocol decides what the replicator may do and what it may claim, from states and times that it is given. It
// calls nothing: no clock, no server, no file. The daemon, the commands, the status page and the simulation of the
// protocol call the same functions, so a question has one answer (Rule 14).
//
// What follows from the state of a log alone is a method of checkpoint.State. A function stands here if it also needs a
// time, an answer of an outside system or the state of another log. Its result is a value with a code. Callers make
// texts for people from the code, and never branch on a text.
//
// Premise is the value for a setting that an outside system holds: queue judges the streams, and each other client can
// judge what it relies on in the same shape.
package protocol
