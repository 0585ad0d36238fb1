package conn

import (
	"context"

	"github.com/nats-io/nats.go"
)

// Signal publishes an empty message, which nothing stores and which may be lost.
func (c *Conn) Signal(subject string) error { return c.Publish(subject, nil) }

// Publish publishes a message, which nothing stores and which may be lost.
func (c *Conn) Publish(subject string, data []byte) error {
	if err := c.NC.Publish(subject, data); err != nil {
		return err
	}
	return c.NC.Flush()
}

// Listen calls f with each message of a subject, one after the other, until ctx ends.
func (c *Conn) Listen(ctx context.Context, subject string, f func(data []byte)) error {
	sub, err := c.NC.Subscribe(subject, func(m *nats.Msg) { f(m.Data) })
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	return nil
}

// Signals delivers a value for each Signal on a subject, until ctx ends. Signals that arrive while
// a value is still waiting to be received are merged into it.
func (c *Conn) Signals(ctx context.Context, subject string) (<-chan struct{}, error) {
	signals := make(chan struct{}, 1)
	sub, err := c.NC.Subscribe(subject, func(*nats.Msg) {
		select {
		case signals <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	return signals, nil
}
