package conn

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// bounded bounds the requests that the client library makes by WithAckTimeout. The library does so
// only where the caller has no deadline. For deletions it requires evidence that something was
// deleted.
type bounded struct {
	jetstream.JetStream
	c *Conn
}

func (b bounded) AccountInfo(ctx context.Context) (*jetstream.AccountInfo, error) {
	ctx, cancel := b.c.WithAckTimeout(ctx)
	defer cancel()
	return b.JetStream.AccountInfo(ctx)
}

func (b bounded) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	ctx, cancel := b.c.WithAckTimeout(ctx)
	defer cancel()
	return b.JetStream.Stream(ctx, name)
}

func (b bounded) UpdateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	ctx, cancel := b.c.WithAckTimeout(ctx)
	defer cancel()
	return b.JetStream.UpdateStream(ctx, cfg)
}

func (b bounded) DeleteStream(ctx context.Context, name string) error {
	return b.c.carryOut(ctx, "STREAM.DELETE."+name, nil)
}

func (b bounded) DeleteConsumer(ctx context.Context, stream, name string) error {
	return b.c.carryOut(ctx, "CONSUMER.DELETE."+stream+"."+name, nil)
}
