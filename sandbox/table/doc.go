// Package table is one table of the sandbox's DynamoDB: its definition as CreateTable and UpdateTable change it and
// DescribeTable shows it, its key schema, its items in key order with the index of their times to live, and what they
// were before.
//
// Files, from the top down:
//
//	describe.go    the definition as DescribeTable shows it
//	update.go      UpdateTable
//	indexes.go     its changes of global indexes
//	past.go        the table as it was: changes, and the items as of a time
//	table.go       the table
//	definition.go  CreateTable
//	tags.go        tags
//	items.go       items in key order, times to live
//	schema.go      keys
package table
