package conn

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	pullBytes = 8 << 20
	pullBatch = 1000
)

// Consumer reads messages of a stream in order, without acknowledgements: nothing is ever delivered
// a second time or out of order. After an error it does not restart by itself: its user makes
// another one, after checking that the stream is still the same. Pending 0 does not mean the end of
// the stream: the replica that serves the consumer may lag behind the stream's leader. A Consumer
// may be used by one goroutine only.
type Consumer struct {
	c         *Conn
	made      jetstream.Consumer
	stream    string
	name      string
	read      prometheus.Counter
	msgs      jetstream.MessagesContext // nil until something is requested
	pending   uint64
	delivered uint64 // messages so far
}

// Message is one stored message.
type Message struct {
	Seq     uint64
	Data    []byte
	ID      string // Nats-Msg-Id, "" when it has none
	Subject string
	Stored  time.Time
}

// Consume starts reading a stream at sequence from, or at the first message after it. Nothing is
// requested before the first Request or Next. read counts the bytes.
func (c *Conn) Consume(ctx context.Context, stream string, from uint64, read prometheus.Counter) (*Consumer, error) {
	ctx, cancel := c.WithAckTimeout(ctx)
	defer cancel()
	made, err := c.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(from, 1),
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	info := made.CachedInfo()
	return &Consumer{
		c: c, made: made, stream: info.Stream, name: info.Name, read: read, pending: info.NumPending,
	}, nil
}

// Request has the server send the next n messages and none after them, which Next then returns; 0:
// all that come. What an earlier call has requested must have been returned: the rest of it would
// be lost, and Next would return ErrDropped.
func (r *Consumer) Request(n int) (err error) {
	if r.msgs != nil {
		r.msgs.Stop()
	}
	opts := []jetstream.PullMessagesOpt{
		jetstream.PullMaxMessagesWithBytesLimit(pullBatch, pullBytes), jetstream.PullExpiry(20 * time.Second),
		jetstream.PullHeartbeat(2 * time.Second), jetstream.WithMessagesErrOnMissingHeartbeat(true),
	}
	if n > 0 {
		opts = append(opts, jetstream.StopAfter(n))
	}
	r.msgs, err = r.made.Messages(opts...)
	return err
}

// Pending returns how many messages there are to read, as reported by the replica that serves the
// consumer.
func (r *Consumer) Pending() uint64 { return r.pending }

// Next returns the next message; ErrIdle when none came within idle, the cause of ctx when that
// ended. After any other error the consumer cannot be used any more.
func (r *Consumer) Next(ctx context.Context, idle time.Duration) (Message, error) {
	if r.msgs == nil {
		if err := r.Request(0); err != nil {
			return Message{}, err
		}
	}
	waiting, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	m, err := r.msgs.Next(jetstream.NextContext(waiting))
	if err != nil {
		if ctx.Err() != nil {
			return Message{}, context.Cause(ctx)
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) {
			return Message{}, ErrIdle
		}
		return Message{}, err
	}
	meta, err := m.Metadata()
	if err != nil {
		return Message{}, err
	}
	if r.delivered++; meta.Sequence.Consumer != r.delivered {
		return Message{}, ErrDropped
	}
	r.pending = meta.NumPending
	r.read.Add(float64(len(m.Data())))
	return Message{
		Seq: meta.Sequence.Stream, Data: m.Data(), ID: m.Headers().Get(nats.MsgIdHdr), Subject: m.Subject(),
		Stored: meta.Timestamp,
	}, nil
}

// Close deletes the consumer. If the server cannot be reached now, it deletes the idle consumer by
// itself after a minute.
func (r *Consumer) Close(ctx context.Context) {
	if r.msgs != nil {
		r.msgs.Stop()
	}
	if !r.c.NC.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = r.c.JS.DeleteConsumer(ctx, r.stream, r.name)
}
