// Package presence lets the processes of a pipeline hear of each other: every two seconds each one
// says by a message, which nothing stores, which logs it owns, how much work they are, and whether
// the services answer it. Members wait for a log without asking its server all the time, share the
// work, and take it over sooner when a process is gone.
//
// What is heard is a hint. It may be late, lost, or wrong; only a claim in the log decides who owns
// it (package queue). Who reads it ages it with its own clock.
package presence
