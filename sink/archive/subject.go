package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// subject publishes events to NATS. Where a JetStream stream listens on the subject, an event is durable once the
// stream has acknowledged it. Its id is the message id, so that the stream stores a replay within its window only once.
// Without a stream only current subscribers receive the events.
type subject struct {
	name    string
	conn    *nats.Conn
	stream  jetstream.JetStream // nil: no stream listens on the subject
	timeout time.Duration
}

// inFlight bounds the unacknowledged publications of one Write.
const inFlight = 256

// openSubject looks for a stream on the subject.
func openSubject(ctx context.Context, o Options, log *zap.Logger) (*subject, error) {
	if o.Conn == nil {
		return nil, errors.New("no NATS connection is configured")
	}
	js, err := jetstream.New(o.Conn)
	if err != nil {
		return nil, err
	}
	s := &subject{name: o.Subject, conn: o.Conn, stream: js, timeout: o.Timeout}
	_, err = js.StreamNameBySubject(ctx, o.Subject)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		// Decided and logged once, at the start. Falling back later, while a stream is unavailable, would lose events
		// without a message.
		log.Warn("no stream listens on the archive subject: events are not stored, and are lost without a subscriber",
			zap.String("subject", o.Subject))
		s.stream = nil
		return s, nil
	}
	return nil, fmt.Errorf("look for a stream on %s: %w", o.Subject, err)
}

// publish makes the lines durable in the stream, or sends them to the current subscribers.
func (s *subject) publish(ctx context.Context, lines []line) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.stream != nil {
		return s.store(ctx, lines)
	}
	for _, l := range lines {
		if err := s.conn.PublishMsg(s.message(l)); err != nil {
			return err
		}
	}
	return s.conn.FlushWithContext(ctx)
}

// store publishes the lines and waits for their acknowledgements, inFlight at a time.
func (s *subject) store(ctx context.Context, lines []line) error {
	for len(lines) > 0 {
		n := min(len(lines), inFlight)
		acks := make([]jetstream.PubAckFuture, n)
		for i, l := range lines[:n] {
			ack, err := s.stream.PublishMsgAsync(s.message(l))
			if err != nil {
				return err
			}
			acks[i] = ack
		}
		for _, ack := range acks {
			select {
			case <-ack.Ok():
			case err := <-ack.Err():
				return fmt.Errorf("wait for the acknowledgement on %s: %w", s.name, err)
			case <-ctx.Done():
				return fmt.Errorf("wait for the acknowledgement on %s: %w", s.name, context.Cause(ctx))
			}
		}
		lines = lines[n:]
	}
	return nil
}

// message returns the event in the structured mode of CloudEvents' NATS binding.
func (s *subject) message(l line) *nats.Msg {
	return &nats.Msg{Subject: s.name, Data: l.body, Header: nats.Header{
		jetstream.MsgIDHeader: {l.id},
		"content-type":        {"application/cloudevents+json"},
	}}
}
