// Package presence exchanges messages between the processes of a pipeline. Every two seconds each
// one publishes, without storing it, which logs it owns, how much work they are, and whether the
// services answer it. Members wait for a log without polling its server all the time, share the
// work, and take it over sooner when a process is gone.
//
// A message is a hint. It may be late, lost, or wrong; only a claim in the log decides which
// process owns it (package queue). The receiver ages a message with its own clock.
package presence
