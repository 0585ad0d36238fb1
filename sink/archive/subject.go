package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/failure"
)

// Options of a Subject.
type Options struct {
	Subject string
	Conn    *nats.Conn    // the caller closes it
	Domain  string        // of JetStream, where it is not that of the server
	Timeout time.Duration // for the acknowledgements of one Write; default 30 s
}

// Subject publishes events to NATS. Where a JetStream stream listens on the subject, an event is
// durable once the stream has acknowledged it. Its id is the message id, so that the stream stores
// a replay within its window only once. Without a stream only current subscribers receive the
// events.
//
// An event is published at least once. It has the same id on every replay, so that readers can drop
// duplicates. A Subject is safe for concurrent use.
type Subject struct {
	name    string
	conn    *nats.Conn
	stream  jetstream.JetStream // nil: no stream listens on the subject
	timeout time.Duration
	zstd    *zstd.Encoder
}

// inFlight bounds the publications that wait for their acknowledgements.
const inFlight = 256

// OpenSubject looks for a stream on the subject.
func OpenSubject(ctx context.Context, o Options, log *zap.Logger) (*Subject, error) {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	js, err := jetstream.New(o.Conn)
	if o.Domain != "" {
		js, err = jetstream.NewWithDomain(o.Conn, o.Domain)
	}
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	s := &Subject{name: o.Subject, conn: o.Conn, stream: js, timeout: o.Timeout, zstd: z}
	_, err = js.StreamNameBySubject(ctx, o.Subject)
	if noStream(err) {
		err = confirmNoStream(ctx, js, o.Subject)
	}
	switch {
	case err == nil:
		return s, nil
	case noStream(err):
		// Decided and logged once, at the start. Falling back later, while a stream is unavailable,
		// would lose events without a message.
		log.Warn("no stream listens on the archive subject: events are not stored, and are lost without a subscriber",
			zap.String("subject", o.Subject))
		s.stream = nil
		return s, nil
	}
	return nil, fmt.Errorf("look for a stream on %s: %w", o.Subject, err)
}

// noStream reports whether the answer is that no stream listens on a subject.
func noStream(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrJetStreamNotEnabled)
}

// confirmPause is the time before a stream that was not found is looked for again.
const confirmPause = time.Second

// confirmNoStream requests the streams that listen on a subject again: by name, and by a listing.
// It returns nil if there is one.
//
// Rule 13: a server that loads its streams answers that there is none, and the listing of a cluster
// leaves out a stream if its leader does not answer. The process relies on the result for its whole
// life, so a false one would lose events without a message.
func confirmNoStream(ctx context.Context, js jetstream.JetStream, subject string) error {
	if err := failure.Pause(ctx, confirmPause); err != nil {
		return err
	}
	if _, err := js.StreamNameBySubject(ctx, subject); !noStream(err) {
		return err
	}
	found := false
	all := js.ListStreams(ctx, jetstream.WithStreamListSubject(subject))
	for range all.Info() {
		found = true
	}
	switch {
	case all.Err() != nil:
		return all.Err()
	case !found:
		return jetstream.ErrStreamNotFound
	}
	return nil
}

// Write makes the messages durable in the stream, or sends them to the current subscribers. One
// that is too large for a message of the server, or of the stream, is compressed. Write returns
// those that are too large even so: they will never be published. After an error some may be
// durable, and the caller has to write all of them again.
//
// Rule 1: an event counts as published when its publication is acknowledged.
func (s *Subject) Write(ctx context.Context, messages []Message) (refused []Message, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	large, err := s.publish(ctx, messages, s.message)
	if err == nil && len(large) > 0 {
		refused, err = s.publish(ctx, large, s.compressed)
	}
	if err != nil {
		return nil, fmt.Errorf("publish to archive: %w", err)
	}
	return refused, nil
}

// publish publishes the messages in a form, inFlight at a time, and returns those that are too
// large in it.
func (s *Subject) publish(
	ctx context.Context, messages []Message, form func(Message) *nats.Msg,
) (large []Message, err error) {
	for batch := range slices.Chunk(messages, inFlight) {
		var sent []Message
		var acks []jetstream.PubAckFuture
		for _, m := range batch {
			msg := form(m)
			if int64(msg.Size()) > s.conn.MaxPayload() {
				large = append(large, m)
				continue
			}
			ack, err := s.send(msg)
			if err != nil {
				return nil, err
			}
			sent, acks = append(sent, m), append(acks, ack)
		}
		if s.stream == nil {
			continue
		}
		for i, ack := range acks {
			switch err := s.wait(ctx, ack); {
			case isTooLarge(err):
				large = append(large, sent[i])
			case err != nil:
				return nil, fmt.Errorf("wait for the acknowledgement on %s: %w", s.name, err)
			}
		}
	}
	if s.stream == nil {
		return large, s.conn.FlushWithContext(ctx)
	}
	return large, nil
}

// send publishes a message; without a stream there is no acknowledgement.
func (s *Subject) send(msg *nats.Msg) (jetstream.PubAckFuture, error) {
	if s.stream == nil {
		return nil, s.conn.PublishMsg(msg)
	}
	return s.stream.PublishMsgAsync(msg)
}

func (s *Subject) wait(ctx context.Context, ack jetstream.PubAckFuture) error {
	select {
	case <-ack.Ok():
		return nil
	case err := <-ack.Err():
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// message returns the event in the structured mode of CloudEvents' NATS binding.
func (s *Subject) message(m Message) *nats.Msg {
	return &nats.Msg{Subject: s.name, Data: m.Body, Header: nats.Header{
		jetstream.MsgIDHeader: {m.ID},
		"content-type":        {"application/cloudevents+json"},
	}}
}

// compressed returns the same with its data compressed.
func (s *Subject) compressed(m Message) *nats.Msg {
	msg := s.message(m)
	msg.Data = s.zstd.EncodeAll(m.Body, nil)
	msg.Header["Content-Encoding"] = []string{"zstd"}
	return msg
}
