package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// Kept is a stream that is kept of a table.
type Kept struct {
	What     string `json:"what"` // log, requests, letters or archive
	Stream   string `json:"stream"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// Kept returns the streams that are kept of a table: its log first.
func (q *Queue) Kept(ctx context.Context, table string) (all []Kept, err error) {
	c, pipeline := q.conn, q.opts.Pipeline
	log := streamName(pipeline, table)
	for _, k := range []Kept{
		{What: "log", Stream: log}, {What: "requests", Stream: requestsStream(log)},
		{What: "letters", Stream: lettersStream(log)}, {What: "archive", Stream: archiveStream(log)},
	} {
		st, err := c.JS.Stream(ctx, k.Stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = c.ConfirmMissing(ctx, k.Stream)
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for stream %s: %w", k.Stream, err)
		}
		info := st.CachedInfo()
		if p := info.Config.Metadata[conn.MetaPipeline]; p != pipeline {
			return nil, fmt.Errorf("stream %s belongs to pipeline %q", k.Stream, p)
		}
		k.Messages, k.Bytes = info.State.Msgs, info.State.Bytes
		all = append(all, k)
	}
	return all, nil
}

// Delete deletes a stream of a table that will never be replicated again. It succeeds if the stream
// is gone.
func (q *Queue) Delete(ctx context.Context, k Kept) error {
	err := q.conn.JS.DeleteStream(ctx, k.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = q.conn.ConfirmMissing(ctx, k.Stream) // Rule 13
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("delete stream %s: %w", k.Stream, err)
	}
	return nil
}
