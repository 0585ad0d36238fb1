// Package bigtable makes writes durable in Cloud Bigtable, in any order, any number of times.
//
// Every row is written by one CheckAndMutateRow: if the row already holds this item at this version
// or later, nothing happens, else the item's cells are replaced. The server decides at the moment
// of writing, so a retry, a replay, a second owner and a call that arrives after its client gave up
// are all harmless. A call with an unknown outcome is therefore sent again.
//
// The decision rests on one cell per row and item, beside the data:
//
//	_tr_live:<item>  the item is in this row, at the version that is the cell's timestamp
//	_tr_dead:<item>  the item left this row at that version: a tombstone, collected after Options.Tombstones
//
// <item> is "i" in a row that one item owns, else 16 bytes of hash. The value of both names
// pipeline, source table and the item's canonical key, so that verify finds the item that a cell
// belongs to; package guard has its forms.
//
// The package also keeps the state table of the pipelines (state.go), compares and creates tables
// (package tableschema) and reads rows for the verifier (rows.go).
//
// Goroutines: a Client has two, which observe that the process runs (stall.go) and whether it has
// to wait for processors (cpu.go). All exported methods are safe for concurrent use and run in
// their caller's goroutine; the lanes of all tables share one Client. A pooled request is used by
// one call at a time.
//
// Files, from the top down:
//
//	resync.go     writes one item that was read from the source table
//	foreign.go    deletes cells that belong to no item
//	apply.go      writes one item: its rows, in a safe order
//	latency.go    how long Bigtable takes for a read
//	mappings.go   the stored mappings of a table, by hash
//	lognote.go    which entry of a table's log was acknowledged
//	position.go   how far the continuous comparison of a table is
//	filemarks.go  which files a copy by workers has made durable
//	order.go      the order of a copy by workers, and the beats of its owner
//	target.go     which pipeline owns a target table
//	targetrow.go  the row that names the owner, and its changes
//	format.go     the row that names the format of a pipeline's logs
//	fenced.go     the state rows of all tables, and fenced ones
//	tables.go     compares and creates the tables
//	state.go      the state rows of the pipelines
//	held.go       reads what rows hold of one item
//	guarded.go    reads rows with their guards
//	rows.go       reads rows for the verifier
//	profile.go    the app profile
//	principal.go  the identity of the caller
//	guards.go     the values of guards
//	call.go       one call, repeated until it is answered
//	span.go       the span of a call, where its write is traced
//	instance.go   what the service charges the instance for
//	client.go     clients and tables
//	limit.go      lets as many calls begin as may be in flight, calls of the stream first
//	bound.go      finds how many that are
//	cpu.go        whether this machine's processors limit the calls
//	conn.go       connections
//	stall.go      sends nothing that a process held back while it stood still
//	wire.go       a request as bytes
//	encode.go     a row of a write as a request
//	rowwrite.go   the same as data, for the simulation
//	check.go      the limits of the service
//	filters.go    parts of filters
//	metrics.go    metrics
//	retry.go      what follows a failed attempt
//	classify.go   errors and their classes
//	options.go    options and their defaults
//	endpoint.go   the servers, and how they are dialed
package bigtable
