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

// Options of a Subject.
type Options struct {
	Subject string
	Conn    *nats.Conn    // the caller closes it
	Timeout time.Duration // for the acknowledgements of one Write; default 30 s
}

// Subject publishes events to NATS. Where a JetStream stream listens on the subject, an event is durable once the
// stream has acknowledged it. Its id is the message id, so that the stream stores a replay within its window only once.
// Without a stream only current subscribers receive the events.
//
// An event is published at least once. It has the same id on every replay, so that readers can drop duplicates. A
// Subject is safe for concurrent use.
type Subject struct {
	name    string
	conn    *nats.Conn
	stream  jetstream.JetStream // nil: no stream listens on the subject
	timeout time.Duration
}

// inFlight bounds the unacknowledged publications of one Write.
const inFlight = 256

// OpenSubject looks for a stream on the subject.
func OpenSubject(ctx context.Context, o Options, log *zap.Logger) (*Subject, error) {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	js, err := jetstream.New(o.Conn)
	if err != nil {
		return nil, err
	}
	s := &Subject{name: o.Subject, conn: o.Conn, stream: js, timeout: o.Timeout}
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

// Write makes the messages durable in the stream, or sends them to the current subscribers. After an error some may be
// durable, and the caller has to write all of them again.
//
// Rule 1: an event counts as published when its publication is acknowledged.
func (s *Subject) Write(ctx context.Context, messages []Message) error {
	if err := s.publish(ctx, messages); err != nil {
		return fmt.Errorf("publish to archive: %w", err)
	}
	return nil
}

func (s *Subject) publish(ctx context.Context, messages []Message) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.stream != nil {
		return s.store(ctx, messages)
	}
	for _, m := range messages {
		if err := s.conn.PublishMsg(s.message(m)); err != nil {
			return err
		}
	}
	return s.conn.FlushWithContext(ctx)
}

// store publishes the messages and waits for their acknowledgements, inFlight at a time.
func (s *Subject) store(ctx context.Context, messages []Message) error {
	for len(messages) > 0 {
		n := min(len(messages), inFlight)
		acks := make([]jetstream.PubAckFuture, n)
		for i, m := range messages[:n] {
			ack, err := s.stream.PublishMsgAsync(s.message(m))
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
		messages = messages[n:]
	}
	return nil
}

// message returns the event in the structured mode of CloudEvents' NATS binding.
func (s *Subject) message(m Message) *nats.Msg {
	return &nats.Msg{Subject: s.name, Data: m.Body, Header: nats.Header{
		jetstream.MsgIDHeader: {m.ID},
		"content-type":        {"application/cloudevents+json"},
	}}
}
