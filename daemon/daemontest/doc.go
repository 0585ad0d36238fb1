// Package daemontest runs a replicator in the process of a test, against a sandbox, so that the
// engines of commands can be tried beside it without starting programs.
//
// Files, from the top down:
//
//	world.go   the sandbox with a configuration, and both sides of a target as commands open them
//	daemon.go  the replicator
package daemontest
