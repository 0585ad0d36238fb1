// Package plants makes worlds in which both sides are equal, and then plants one difference at a
// time. A world has random mappings for one or two tables of a target, and a random history. The
// writes of the history are the requests of the real sink, executed by a table in memory. An oracle
// states what each plant must show. It shares no code with the comparers: it has the rules from
// which the mapping was made, and the columns that each item ever had.
//
// Files, from the top down:
//
//	world.go    a world, its history, and its target
//	oracle.go   which plants there are, and what they must show
//	sealing.go  guards, and the secrets that seal keys
//	mapping.go  random mappings
package plants
