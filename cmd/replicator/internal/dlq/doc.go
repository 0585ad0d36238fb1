// Package dlq has the commands about dead letters: flags and printing.
//
// Files, from the top down:
//
//	dlq.go    list, show, drop
//	retry.go  retry: applies dead letters again
package dlq
