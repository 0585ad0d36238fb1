// Package queue keeps the durable log of each table: one JetStream stream, one writer at a time, entries in
// one order. It appends, folds, reads and trims; it also keeps the dead letters of a table.
//
// # The log
//
// A Log is one stream. Every append carries Nats-Expected-Last-Sequence, so the server itself admits one
// writer: a second one is refused whatever it believes (Rule 2). A sequence number alone is no identity, since
// a store that lost its tail hands numbers out again; therefore every entry also carries the hash of its
// predecessor, and everybody who reads asserts that chain. A message outside the chain folds as nothing.
//
// # The state
//
// State is the fold of the log and nothing else: the last complete snapshot and what follows it. The Writer
// holds that state and appends snapshots by volume.
//
//	q, err := queue.Open(ctx, options, logger, registry)   // in this process, or an outside cluster
//	log, err := q.Log(ctx, "Orders")                       // ErrNoLog: CreateLog
//	w, err := log.Claim(ctx, queue.ClaimOptions{…})        // waits for its turn
//	seq, err := w.Append(ctx, body, data)                  // durable when it returns nil
//	if errors.Is(err, queue.ErrOutcomeUnknown) { err = w.Recover(ctx) }
//
// # Doubt
//
// A lost acknowledgement, a time-out, a reconnect: nobody knows what was stored. Append then returns ErrOutcomeUnknown
// and refuses to go on until Recover has read what the stream really holds (Rule 4). Whatever the caller held
// in memory before that is to be thrown away.
package queue
