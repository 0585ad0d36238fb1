// Package compare holds the commands that compare both sides: flags and printing, a file for each. What they do is in
// the packages beside it.
//
// Files, from the top down:
//
//	compare.go  what all of them share
//	verify.go   replicator verify
//	groups.go   its counts by rule and by prefix
//	html.go     its page
//	repair.go   replicator repair
//	explain.go  replicator explain
//	cutover.go  replicator cutover
//	output.go   the files that they write
package compare
