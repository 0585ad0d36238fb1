// Package dryrun reads the streams of tables and applies their mappings without writing anything: no log, no row in
// Bigtable, no state. It counts what a run would do.
//
//	shards ─► source.Pool ─► workers: record ─► transform.Program ─► counts ─► Report
//
// It owns nothing, so it may run beside the replicator that owns the tables' logs, and takes its share of the stream's
// read throughput there. Where it begins is forgotten when it ends.
//
// Goroutines: one for each table reads its graph and hands shards to the table's pool; workers apply the mapping to
// pages, with a decoder and a Write each. Counters have a mutex, which is taken once for a page.
//
// Files, from the top down:
//
//	run.go        tables, side by side, until the context ends
//	table.go      one table: its shards, and the workers that take its pages
//	confirm.go    whether a shard is at its end, or gone
//	graph.go      which shard may be read now
//	report.go     the counts as a report
//	estimate.go   nodes of Bigtable and dollars of a month
//	count.go      what a page adds to the counts
//	heavy.go      the keys with the largest share of the writes
//	sizes.go      the distribution of sizes, and shares
package dryrun
