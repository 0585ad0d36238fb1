// Package archiving runs the archive of a table while its log is owned. The deletions in the
// table's log are copied into a stream of the archive's own, so that a bucket which is away holds
// back nothing else; from there they go into objects and to a subject, each at its own pace.
//
//	Archiver.Store ─► writer ─► archive's stream ─┬─► objects ─► bucket     intent → object → done
//	(from apply)                                   ├─► subject ─► NATS       progress
//	                                               └─► closer  ─► bucket     manifest, when an hour is over
//
// Files, from the top down:
//
//	archiver.go     a table's archive: its lives
//	heal.go         heals the archive's part of gaps from incremental exports
//	healexport.go   the events of one export
//	healcompare.go  what the archive has of their events already
//	objects.go      cuts parts into objects and creates them
//	closing.go      manifests
//	reconcile.go    objects and manifests that the stream lacks
//	columns.go      which columns the objects have
//	build.go        one object, in a file
//	gather.go       what the entries have for some objects, read once
//	subject.go      publishes
//	held.go         what the archive holds of some hours, for a Healer
//	facts.go        what the table's log holds about the archive
//	store.go        the way in
//	trouble.go      what is tried again, and what halts a sink
//	fold.go         the state from what is stored
//	status.go       the status for operators
//	lost.go         a stream that lost entries
//	writer.go       the one place that appends to the stream
//	place.go        where the archives of all tables go
package archiving
