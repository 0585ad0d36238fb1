// Package daemon is a running replicator: it opens the services of a configuration, wires the
// pipeline, and runs it beside the admin server, the heap's watcher and the finder of tables.
//
// Goroutines: Run has one for each of these, and one for the pipeline, which has its own.
//
// Files, from the top down:
//
//	daemon.go   what a daemon has open, and how it runs
//	found.go    tables that come and go
//	options.go  the options of the pipeline, from the configuration
//	services.go services that fail and are back, in the log and for the status page
//	heap.go     the limit of the heap, which follows the live bytes
//	metrics.go  the metrics of the process, and the label target
//	tracing.go  where traces go
//	otlp.go     where metrics are sent
//	process.go  the name of the process
package daemon
