// Package catalog holds the tables of a configuration: for each the parsed mapping, its description
// by DynamoDB, and the mapping compiled for its target. It looks for the tables that selections
// choose, by pattern and tags, in DynamoDB and among the logs of the pipeline. config.Expand
// decides which ones; nothing behind it handles a selection.
//
// Files, from the top down:
//
//	command.go  the tables of a command, found once
//	finder.go   the tables of a running daemon, found again and again
//	list.go     what DynamoDB and the queue hold
//	catalog.go  the tables: parse, describe, compile
//	about.go    the tables that a command about one of them needs
//	found.go    tables that are left out, because they are gone or have errors
//	stored.go   what earlier runs stored of a table: identity, and the mapping that wrote its rows
//	sample.go   samples items of a table, and computes split keys from them
package catalog
