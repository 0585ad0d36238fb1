// Package catalog holds the tables of a configuration with everything that is known about them: the parsed mapping,
// what DynamoDB says about the table, and the mapping compiled for its target.
//
// Files, from the top down:
//
//	catalog.go  the tables: parse, describe, compile
//	sample.go   items of a table, and the split keys that follow from them
package catalog
