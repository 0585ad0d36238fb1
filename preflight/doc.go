// Package preflight finds what stands in the way before anything is written: everything that would
// keep `replicator run` from working, or that its user should know, in the configuration and the
// mappings, in DynamoDB, Bigtable and the queue, and in what earlier runs stored. It proposes a
// configuration for live tables, and plans recoveries. It writes nothing but, for a recovery that
// was confirmed, the new life in the row of a table.
//
// Files, from the top down:
//
//	propose.go    what init finds out about each table
//	proposal.go   the configuration that it proposes
//	recovery.go   what recover does
//	preflight.go  the report, and the order of the checks
//	ceiling.go    how many changes a second, and how fast a copy, a deployment carries
//	selections.go which tables the selections choose
//	sample.go     the mappings on a sample of items
//	servers.go    DynamoDB, Bigtable and the queue
//	archive.go    the archive's bucket
//	stored.go     state, targets and logs of earlier runs
//	access.go     what copies and resyncs read: single items, exports
//	first.go      what only the first start of a table decides
//	policies.go   the permissions that a configuration needs in both clouds
//	copycost.go   what copying the items of a table takes
//	running.go    what the pipeline costs while nothing changes
//	durable.go    directories that this operating system cannot sync
//	capacity.go   memory, the volume of the logs, the limits of the logs and of the NATS account
//	finding.go    adds what a check finds to the report
package preflight
