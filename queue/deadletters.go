package queue

import (
	"context"

	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// DeadLetters opens the table's dead letters, and makes their stream the first time.
func (l *Log) DeadLetters(ctx context.Context) (*deadletter.Store, error) {
	return deadletter.Open(ctx, l.q.conn, l.deadLetters())
}

// ExistingDeadLetters is DeadLetters for commands, which write nothing: nil without an error while there is no stream
// yet.
func (l *Log) ExistingDeadLetters(ctx context.Context) (*deadletter.Store, error) {
	return deadletter.OpenExisting(ctx, l.q.conn, l.deadLetters())
}

func (l *Log) deadLetters() deadletter.Options {
	o := l.q.opts
	return deadletter.Options{
		Pipeline: o.Pipeline, Table: l.table, Stream: deadLetterStream(l.name), Subject: l.subject.letters,
		Replicas: o.Replicas, MaxBytes: o.LettersMaxBytes, IdleCheck: o.IdleCheck, BytesRead: l.metrics.read,
	}
}

// deadLetterStream returns the name of the stream with the dead letters of a log.
func deadLetterStream(log string) string { return log + "_letters" }
