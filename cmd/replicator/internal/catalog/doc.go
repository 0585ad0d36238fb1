// Package catalog holds the tables of a configuration: for each the parsed mapping, its description by DynamoDB, and
// the mapping compiled for its target.
//
// Files, from the top down:
//
//	catalog.go  the tables: parse, describe, compile
//	found.go    tables of selections that are left out, because they are gone or have errors
//	stored.go   what earlier runs stored of a table: identity, and the mapping that wrote its rows
//	sample.go   samples items of a table, and computes split keys from them
package catalog
