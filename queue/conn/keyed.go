package conn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Keyed is a stream that holds one message for each id, as the streams of dead letters and of
// requests do. A writer replaces a message by naming the sequence of the stored one.
type Keyed struct {
	conn   *Conn
	Stream jetstream.Stream
	name   string
	prefix string // of the subjects; the id follows
}

// KeyedConfig is what a stream of that kind needs; the caller adds limits and a description.
func KeyedConfig(name, prefix, pipeline string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{prefix + "*"}, Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, MaxMsgsPerSubject: 1, AllowDirect: false, Duplicates: time.Second,
		Metadata: map[string]string{MetaFormat: strconv.Itoa(FormatNumber), MetaPipeline: pipeline},
	}
}

// OpenKeyed opens a stream of that kind: nil without an error while there is none, a FormatError
// when a later program made it.
func (c *Conn) OpenKeyed(ctx context.Context, name, prefix string) (*Keyed, error) {
	st, err := c.JS.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = c.ConfirmMissing(ctx, name) // Rule 13
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return c.keyed(st, prefix, err)
}

// MakeKeyed is OpenKeyed, and makes the stream if there is none.
func (c *Conn) MakeKeyed(ctx context.Context, cfg jetstream.StreamConfig, prefix string) (*Keyed, error) {
	st, err := c.CreateStream(ctx, cfg)
	return c.keyed(st, prefix, err)
}

func (c *Conn) keyed(st jetstream.Stream, prefix string, err error) (*Keyed, error) {
	if err != nil {
		return nil, err
	}
	cfg := st.CachedInfo().Config
	if need, _ := strconv.Atoi(cfg.Metadata[MetaFormat]); need > FormatNumber {
		return nil, &FormatError{What: "stream " + cfg.Name, Need: need}
	}
	return &Keyed{conn: c, Stream: st, name: cfg.Name, prefix: prefix}, nil
}

// ID returns the id in a subject of the stream.
func (k *Keyed) ID(subject string) string { return strings.TrimPrefix(subject, k.prefix) }

// Get returns the message of an id as the stream's leader has it; jetstream.ErrMsgNotFound when
// there is none.
func (k *Keyed) Get(ctx context.Context, id string) (*jetstream.RawStreamMsg, error) {
	if id == "" || strings.ContainsAny(id, ".*> \t\r\n") { // not one token of a subject
		return nil, jetstream.ErrMsgNotFound
	}
	return k.conn.GetMessage(ctx, k.name, MessageRequest{LastFor: k.prefix + id})
}

// PutFirst calls put, which is to store the first message of an id, until one is stored that
// readBack returns nil for. readBack returns missing while there is none.
//
// Rule 1: only a message that can be read back counts as stored. The server answers Fenced where an
// earlier attempt has stored it and the acknowledgement was lost; with replicas also while that
// attempt is under way, and it may never reach a quorum.
func (k *Keyed) PutFirst(ctx context.Context, put, readBack func() error, missing error) error {
	return Retry(ctx, func() error {
		err := put()
		if OutcomeOf(err) != Fenced {
			return err
		}
		if got := readBack(); !errors.Is(got, missing) {
			return got
		}
		return attemptPending(err)
	})
}

// Replace calls change, which reads the message of an id and puts another one in its place, until
// no other attempt is in its way.
func (k *Keyed) Replace(ctx context.Context, change func() error) error {
	return Retry(ctx, func() error {
		err := change()
		if OutcomeOf(err) == Fenced {
			return attemptPending(err)
		}
		return err
	})
}

func attemptPending(err error) error { return fmt.Errorf("%w: %s", ErrAttemptPending, err.Error()) }

// Put stores a message if the stored one of its id is at sequence last; with last 0, if none is
// stored. OutcomeOf classifies its errors.
func (k *Keyed) Put(ctx context.Context, id string, data []byte, last uint64) error {
	ctx, cancel := k.conn.WithAckTimeout(ctx)
	defer cancel()
	_, err := k.conn.JS.PublishMsg(ctx, &nats.Msg{Subject: k.prefix + id, Data: data},
		jetstream.WithExpectLastSequencePerSubject(last), jetstream.WithRetryAttempts(0))
	return err
}

// Purge deletes the message of an id.
func (k *Keyed) Purge(ctx context.Context, id string) error {
	return k.conn.Purge(ctx, k.name, PurgeRequest{Subject: k.prefix + id})
}
