// Package dynamo is the sandbox's DynamoDB. It speaks awsJson 1.0 over HTTP for tables, items and expressions, keeps
// items in memory, hands every committed change to the stream engine, and serves the engine's operations on the same
// port.
//
// Locks: Server.mu covers which tables there are. A table's own lock covers its items and definition, and orders its
// changes: a write commits to the stream engine before it releases the lock.
//
// Files, from the top down:
//
//	operations.go  the operations by name
//	server.go      one HTTP request: authentication, shape, operation, reply
//	save.go        all tables to a file and back
//	load.go        items without HTTP: put, delete, list
//	transact.go    TransactWriteItems, TransactGetItems
//	batch.go       BatchWriteItem
//	read.go        GetItem, BatchGetItem
//	exports.go     ExportTableToPointInTime, DescribeExport, ListExports
//	export_request.go  the parameters and the description of an export
//	settings.go    time to live, backups, tags
//	tables.go      CreateTable, UpdateTable, DeleteTable, DescribeTable, ListTables
//	tokens.go      idempotency of transactions
//	write.go       one change of one item: PutItem, UpdateItem, DeleteItem
//	past.go        reading one item, now or as it was; which tables remember their past
//	faults.go      faults of reads
//	body.go        the body of a request, decompressed
//	find.go        tables by name
package dynamo
