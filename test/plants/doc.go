// Package plants makes worlds in which both sides are equal, and then plants one difference at a
// time. A world has random mappings for one or two tables of a target, and a random history, whose
// writes are the requests of the real sink, executed by a table in memory. What each plant must
// show is told by an oracle that shares no code with the comparers: it knows the rules from which
// the mapping was made, and which columns each item ever had.
//
// Files, from the top down:
//
//	world.go    a world, its history, and its target
//	oracle.go   which plants there are, and what they must show
//	sealing.go  guards, and the secrets that seal keys
//	mapping.go  random mappings
package plants
