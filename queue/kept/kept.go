// Package kept finds what a pipeline keeps of a table, for its end.
package kept

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/internal/naming"
)

// Stream is a stream that is kept of a table.
type Stream struct {
	What     string `json:"what"` // log, requests, letters or archive
	Stream   string `json:"stream"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// Of returns the streams that are kept of a table: its log first.
func Of(ctx context.Context, c *conn.Conn, pipeline, table string) (all []Stream, err error) {
	log := naming.Stream(pipeline, table)
	for _, k := range []Stream{
		{What: "log", Stream: log}, {What: "requests", Stream: naming.Requests(log)},
		{What: "letters", Stream: naming.Letters(log)}, {What: "archive", Stream: naming.Archive(log)},
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

// Delete deletes a stream of a table. It succeeds if the stream is gone.
func Delete(ctx context.Context, c *conn.Conn, k Stream) error {
	err := c.JS.DeleteStream(ctx, k.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = c.ConfirmMissing(ctx, k.Stream) // Rule 13
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("delete stream %s: %w", k.Stream, err)
	}
	return nil
}
