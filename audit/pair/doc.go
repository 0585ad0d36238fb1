// Package pair opens both sides of a target for a command that runs beside the daemon: the source
// tables with their compiled mappings, read within their budgets, and the table of Bigtable. It
// proves from the tables' logs that Bigtable has every change up to a time.
//
// Files, from the top down:
//
//	pair.go        all tables of a target, and the Settler over them
//	prove.go       waits for the proof, with the logs of the running daemon
//	heartbeats.go  waits until heartbeats prove the same
//	ready.go       whether the tables are in a state in which comparing them means something
//	read.go        pages and items of the source, within the read budget
//	proof.go       decides from the states of the logs whether the proof is there
//	logs.go        the tables' logs
package pair
