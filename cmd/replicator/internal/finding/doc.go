// Package finding looks for the tables that the selections of a configuration choose: by pattern and tags, in DynamoDB
// and among the logs of the pipeline. config.Expand decides which ones; nothing behind it sees a selection.
//
// Files, from the top down:
//
//	command.go  the tables of a command, once
//	finder.go   the tables of a running daemon, again and again
//	list.go     what DynamoDB and the queue hold
package finding
