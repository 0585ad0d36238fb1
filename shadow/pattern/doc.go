// Package pattern turns requests to DynamoDB into access patterns: their form without keys and
// values. It counts them, and judges which rows in Bigtable would answer each.
//
//	r := pattern.NewReader(pattern.Table{Name: "Orders", Schema: schema, Indexes: indexes, Program: program})
//	c := pattern.NewCollector()
//	c.Add(r.Of("Query", body), pattern.Answer{Bytes: 4_200, Took: 3 * time.Millisecond})
//	for _, count := range c.Snapshot().Patterns {
//		fmt.Println(count.Requests, count.Pattern.Text()) // Query Orders pk = ? and begins_with(sk, ?), rule order
//		fmt.Println(r.Grade(count.Pattern))               // served: prefix u#{user}#o#
//	}
//
// A pattern has names of tables, indexes and attributes, operators and flags, and the rules of the
// mapping that take the items of its key. It has no value of a request, nor have reasons and
// snapshots: they may be shown and logged. Requests that cannot be read are counted by reason.
//
// A collector holds at most 200 patterns of a table; the rest are one pattern, "other". Snapshots
// of several instances merge exactly, in any order, because sizes and latencies are counted in
// fixed buckets.
//
// Files, from the top down:
//
//	grade.go     the verdict on a pattern: what `reads` declares, else what the rows give
//	declared.go  `of` of an entry of `reads`, parsed
//	collector.go counts of one instance
//	snapshot.go  counts that merge, as JSON
//	replay.go    what became of reads that were to be replayed
//	histogram.go sizes and latencies in fixed buckets
//	of.go        a request's patterns
//	write.go     writes, by their form
//	read.go      reads by key, and scans
//	call.go      the patterns of one request, while it is read
//	reader.go    the tables that requests are read for; values for the mapping
//	pattern.go   a pattern and its text
package pattern
