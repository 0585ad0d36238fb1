// Package queue keeps the durable log of each table: one JetStream stream, one writer at a time,
// entries in one order. It claims a log, appends to it, folds it into a state, reads it, trims it,
// and reports where it is damaged.
//
//	q, err := queue.Open(ctx, options, logger, registry) // in this process, or a server elsewhere
//	log, err := q.Log(ctx, "Orders")                     // ErrNoLog: CreateLog
//
//	end, err := queue.Walk{Log: log}.Changes(ctx, f) // reads next to the owner; ExampleWalk runs
//
//	w, err := log.Claim(ctx, queue.ClaimOptions{…}) // waits until the log may be claimed
//	seq, err := w.Append(ctx, body, data)           // durable when it returns nil
//	if errors.Is(err, queue.ErrOutcomeUnknown) { err = w.Recover(ctx) }
//
// The packages below it are independent of logs: conn (JetStream), embedded (a server in this
// process), deadletter, request, journal, frame; and presence, the messages with which the
// processes of a pipeline announce themselves.
//
// # The log
//
// A Log is one stream. Every append carries Nats-Expected-Last-Sequence, so the server itself
// refuses a second writer, including a former owner that has not noticed the new claim (Rule 2). A
// sequence number alone does not identify an entry, because a store that lost its tail assigns the
// same numbers again. Therefore every entry also carries the hash of its predecessor, and the fold
// and every reader check that chain (checkpoint.Chain). A message that is not part of the chain has
// no effect.
//
// # The state
//
// The state of a table is the fold of its log and nothing else: the last complete snapshot and the
// entries after it. The Writer holds that state, and appends a snapshot whenever enough bytes were
// appended since the last one.
//
// # Unknown outcomes
//
// After a lost acknowledgement, a time-out or a reconnect the outcome of an append is unknown.
// Append then returns ErrOutcomeUnknown and refuses to go on until Recover has read what the stream
// really holds (Rule 4). The caller discards what it held in memory before.
//
// # Goroutines
//
// Nothing here starts a goroutine that outlives a call, apart from the NATS client and the embedded
// server, which Close ends. Queue.Run blocks; one goroutine calls it. Queue and Log may be used by
// several goroutines. A Writer belongs to the write loop of its table: appends, Recover, Trim and
// Release run one at a time under its mutex, and the state that State returns is valid only in the
// goroutine that appends. BeatDueIn and ClaimValid may be called from anywhere. A Reader belongs to
// the goroutine that calls Next.
//
// # Order
//
// Files, from the top down:
//
//	queue.go        open and close the connection, the embedded server; health
//	claim.go        become the owner of a log
//	walk.go         read the changes of items, or all entries, with their owners
//	trim.go         delete entries that are not needed any more; how full a log is
//	append.go       append an entry, or a frame while the next one is packed
//	writer.go       send, snapshot, recover, release
//	ahead.go        encode a frame while the entry before it is being stored
//	limits.go       what may still be appended to a log that fills up
//	control.go      append a control entry without owning the log
//	publish.go      send one entry
//	reader.go       read entries in order, from a mark
//	fold.go         compute the state from the last snapshot and what follows it
//	damage.go       entries that cannot be read
//	server.go       questions about the server for start-up checks
//	kept.go         what is kept of a table, for its end
//	beatrequest.go  request a listing and a beat from the owner
//	rehearsed.go    tell the replicators what a rehearsal of a cutover has shown
//	beside.go       open the streams that a table has besides its log
//	premises.go     settings of the table's streams that are not as they must be
//	log.go          open and create logs, questions about a stream
//	tail.go         how far a reader keeps behind the end of a log that grows fast
//	naming.go       names of streams and subjects
//	unopened.go     streams that the embedded store holds and the server has not opened
//	volume.go       input/output errors of the embedded store's volume
//	disk.go         free space on the volume of the embedded store
//	metrics.go      counters and gauges by table
//	options.go      configuration and its defaults
//	errors.go       sentinels and their classes
package queue
