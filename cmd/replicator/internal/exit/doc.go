// Package exit holds the exit codes of the commands, the error type that carries one, and functions that give errors of
// DynamoDB, Bigtable and the queue their code and hint.
//
// Files, from the top down:
//
//	services.go  errors of DynamoDB, Bigtable and the queue, with their hints
//	exit.go      codes, and the error that carries one
package exit
