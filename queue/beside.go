package queue

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/queue/journal"
	"github.com/tailrace-cdc/replicator/queue/request"
)

// Besides its log a table may have streams of its own. Each is created by the first write to it.

// DeadLetters opens the table's dead letters, and makes their stream the first time.
func (l *Log) DeadLetters(ctx context.Context) (*deadletter.Store, error) {
	if err := l.q.checkUnopened(ctx, l.deadLetters().Stream, hintLetters); err != nil {
		return nil, fmt.Errorf("open stream beside the log of %s: %w", l.table, err)
	}
	return deadletter.Open(ctx, l.q.conn, l.deadLetters())
}

// ExistingDeadLetters is DeadLetters for commands, which write nothing: nil without an error while
// there is no stream.
func (l *Log) ExistingDeadLetters(ctx context.Context) (*deadletter.Store, error) {
	if err := l.q.checkUnopened(ctx, l.deadLetters().Stream, hintLetters); err != nil {
		return nil, fmt.Errorf("open stream beside the log of %s: %w", l.table, err)
	}
	return deadletter.OpenExisting(ctx, l.q.conn, l.deadLetters())
}

func (l *Log) deadLetters() deadletter.Options {
	o := l.q.opts
	return deadletter.Options{
		Pipeline: o.Pipeline, Table: l.table, Stream: lettersStream(l.name), Subject: l.subject.Letters,
		Replicas: o.Replicas, MaxBytes: o.LettersMaxBytes, IdleCheck: o.IdleCheck, BytesRead: l.metrics.read,
	}
}

// Requests opens the requests of commands to the owner of the log for single items, and makes their
// stream the first time.
func (l *Log) Requests(ctx context.Context) (*request.Store, error) {
	if err := l.q.checkUnopened(ctx, l.requests().Stream, hintRequests); err != nil {
		return nil, fmt.Errorf("open stream beside the log of %s: %w", l.table, err)
	}
	return request.Open(ctx, l.q.conn, l.requests())
}

// ExistingRequests is Requests for the owner: it returns nil without an error until the first
// request is stored.
func (l *Log) ExistingRequests(ctx context.Context) (*request.Store, error) {
	if err := l.q.checkUnopened(ctx, l.requests().Stream, hintRequests); err != nil {
		return nil, fmt.Errorf("open stream beside the log of %s: %w", l.table, err)
	}
	return request.OpenExisting(ctx, l.q.conn, l.requests())
}

func (l *Log) requests() request.Options {
	return request.Options{
		Pipeline: l.q.opts.Pipeline, Table: l.table, Stream: requestsStream(l.name), Subject: l.subject.Requests,
		Replicas: l.q.opts.Replicas,
	}
}

// Archive opens the table's events that are to be archived, and makes their stream the first time.
func (l *Log) Archive(ctx context.Context) (*journal.Journal, error) {
	if err := l.q.checkUnopened(ctx, l.archive().Stream, hintArchive); err != nil {
		return nil, fmt.Errorf("open stream beside the log of %s: %w", l.table, err)
	}
	return journal.Open(ctx, l.q.conn, l.archive())
}

// ExistingArchive is Archive for commands: nil without an error while there is no stream yet.
func (l *Log) ExistingArchive(ctx context.Context) (*journal.Journal, error) {
	if err := l.q.checkUnopened(ctx, l.archive().Stream, hintArchive); err != nil {
		return nil, fmt.Errorf("open stream beside the log of %s: %w", l.table, err)
	}
	return journal.OpenExisting(ctx, l.q.conn, l.archive())
}

func (l *Log) archive() journal.Options {
	o := l.q.opts
	return journal.Options{
		Pipeline: o.Pipeline, Table: l.table, What: "archive", Stream: archiveStream(l.name), Subject: l.subject.Archive,
		Replicas: o.Replicas, MaxBytes: o.ArchiveMaxBytes, IdleCheck: o.IdleCheck, BytesRead: l.metrics.read,
	}
}
