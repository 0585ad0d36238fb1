// Package latency measures how long changes take from DynamoDB until they are durable in Bigtable, and remembers what a
// table did in the last minutes and in the last hour.
//
// A creation time in a stream has whole seconds, and the clock of the service is known from replies that have whole
// seconds too. So a latency is up to one second higher than it was, and one below a second is not told from zero.
//
// Files, from the top down:
//
//	history.go    samples of a table: quantiles and rates of the last minutes, points of the last hour
//	collector.go  the histograms of all tables as one metric
//	histogram.go  counts latencies without a lock
package latency
