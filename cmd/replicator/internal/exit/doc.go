// Package exit holds the exit codes of the commands, the error that carries one, and for errors of DynamoDB, Bigtable
// and the queue the code and the hint that go with them.
//
// Files, from the top down:
//
//	services.go  errors of DynamoDB, Bigtable and the queue, with their hints
//	exit.go      codes, and the error that carries one
package exit
