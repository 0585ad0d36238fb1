package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// cursor reads messages of a stream in order. It is a consumer without acknowledgements: nothing is ever
// delivered a second time or out of order. It renews nothing: whoever uses it checks that the stream is still
// the same before it makes another one. That it has no more to read does not mean that the stream ends: the
// replica that serves it may lag behind its leader.
type cursor struct {
	l         *Log
	stream    string
	name      string
	msgs      jetstream.MessagesContext
	pending   uint64 // messages to read, as far as its replica knows
	delivered uint64 // messages so far
}

// message is one stored message.
type message struct {
	seq     uint64
	data    []byte
	id      string // Nats-Msg-Id, "" when it has none
	subject string
	at      time.Time
}

var (
	// errIdle means that no message came in time.
	errIdle = errors.New("no message yet")
	// errDropped means that the client dropped messages that the server had sent: it was read too slowly.
	errDropped = errors.New("messages were dropped before they were read")
)

// cursor starts at sequence from, or at the first message after it.
func (l *Log) cursor(ctx context.Context, from uint64) (*cursor, error) {
	return l.cursorOf(ctx, l.name, from)
}

func (l *Log) cursorOf(ctx context.Context, stream string, from uint64) (*cursor, error) {
	ctx, cancel := l.q.ask(ctx)
	defer cancel()
	cons, err := l.q.consume(ctx, stream, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(from, 1),
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return nil, fmt.Errorf("start reading log of %s: %w", l.table, err)
	}
	c := &cursor{l: l, stream: cons.CachedInfo().Stream, name: cons.CachedInfo().Name, pending: cons.CachedInfo().NumPending}
	c.msgs, err = cons.Messages(jetstream.PullMaxMessagesWithBytesLimit(pullBatch, pullBytes),
		jetstream.PullExpiry(20*time.Second), jetstream.PullHeartbeat(2*time.Second), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return nil, fmt.Errorf("start reading log of %s: %w", l.table, err)
	}
	return c, nil
}

// next returns the next message; errIdle when none came within idle. After another error the cursor is of no
// more use.
func (c *cursor) next(ctx context.Context, idle time.Duration) (message, error) {
	waiting, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	m, err := c.msgs.Next(jetstream.NextContext(waiting))
	if err != nil {
		if ctx.Err() != nil {
			return message{}, context.Cause(ctx)
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) {
			return message{}, errIdle
		}
		return message{}, fmt.Errorf("read log of %s: %w", c.l.table, err)
	}
	meta, err := m.Metadata()
	if err != nil {
		return message{}, fmt.Errorf("read log of %s: %w", c.l.table, err)
	}
	if c.delivered++; meta.Sequence.Consumer != c.delivered {
		return message{}, fmt.Errorf("read log of %s: %w", c.l.table, errDropped)
	}
	c.pending = meta.NumPending
	c.l.metrics.read.Add(float64(len(m.Data())))
	return message{seq: meta.Sequence.Stream, data: m.Data(), id: m.Headers().Get(nats.MsgIdHdr), subject: m.Subject(), at: meta.Timestamp}, nil
}

// close lets the server forget the consumer. When the server is away it forgets by itself after a minute.
func (c *cursor) close(ctx context.Context) {
	c.msgs.Stop()
	if !c.l.q.nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = c.l.q.js.DeleteConsumer(ctx, c.stream, c.name)
}
