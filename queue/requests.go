package queue

import (
	"context"

	"github.com/tailrace-cdc/replicator/queue/request"
)

// Requests opens what commands ask the owner of the log to do with single items, and makes their stream the first time.
func (l *Log) Requests(ctx context.Context) (*request.Store, error) {
	return request.Open(ctx, l.q.conn, l.requests())
}

// ExistingRequests is Requests for the owner: nil without an error while nobody has asked for anything.
func (l *Log) ExistingRequests(ctx context.Context) (*request.Store, error) {
	return request.OpenExisting(ctx, l.q.conn, l.requests())
}

func (l *Log) requests() request.Options {
	return request.Options{
		Pipeline: l.q.opts.Pipeline, Table: l.table, Stream: requestStream(l.name), Subject: l.subject.requests,
		Replicas: l.q.opts.Replicas,
	}
}

// requestStream returns the name of the stream with the requests for a log.
func requestStream(log string) string { return log + "_requests" }
