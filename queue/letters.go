package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

// ErrNoLetter means that there is no dead letter of that id.
var ErrNoLetter = errors.New("no such dead letter")

// Letter is a change that a sink will never take, kept with its reason (Rule 8).
type Letter struct {
	ID        string      `json:"id"`
	Table     string      `json:"table"`
	Sink      string      `json:"sink"`
	Feed      change.Feed `json:"feed"`
	Seq       string      `json:"seq"`
	Op        change.Op   `json:"op"`
	TTL       bool        `json:"ttl,omitempty"`
	Version   int64       `json:"version"`
	Created   int64       `json:"created"`
	KeyHash   uint64      `json:"key_hash"`
	Code      string      `json:"code"`
	Reason    string      `json:"reason"`
	Attempts  int         `json:"attempts"` // beyond the first
	FirstSeen time.Time   `json:"first_seen"`
	LastTried time.Time   `json:"last_tried"`
	// Behind says that the item's earlier change was a dead letter too when this one was refused, so that its old image
	// is not what the sink holds.
	Behind bool   `json:"behind,omitempty"`
	Raw    []byte `json:"-"` // the whole record
}

// NewLetter makes the letter of a change that a sink refused. Its id is a function of feed, sequence number and
// sink: a replay makes the same one.
func NewLetter(table, sink string, c *change.Change, code, reason string, now time.Time) *Letter {
	h := sha256.New()
	for _, s := range []string{c.Feed.Stream, c.Feed.Shard, c.SequenceNumber, sink} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return &Letter{
		ID: hex.EncodeToString(h.Sum(nil)[:10]), Table: table, Sink: sink, Feed: c.Feed, Seq: c.SequenceNumber, Op: c.Op, TTL: c.TTL,
		Version: c.Version, Created: c.Created, KeyHash: c.KeyHash, Code: code, Reason: reason,
		FirstSeen: now.UTC(), LastTried: now.UTC(), Raw: bytes.Clone(c.Raw),
	}
}

// CodeUnreadable is the code of what lies among the dead letters and cannot be read: damaged, or published by another
// program. It has an id and a reason, and nothing else: it can be dropped, and never retried.
const CodeUnreadable = "unreadable"

// Change returns the change as it came out of the log, with the version it had.
func (l *Letter) Change() (*change.Change, error) {
	r, err := change.ScanRecord(l.Raw)
	if err != nil {
		return nil, fmt.Errorf("read letter %s: %w", l.ID, err)
	}
	return &change.Change{
		Op: l.Op, TTL: l.TTL, Version: l.Version, Created: l.Created, SequenceNumber: l.Seq, Feed: l.Feed, KeyHash: l.KeyHash,
		Raw: r.Raw, Keys: r.Keys, New: r.New, Old: r.Old,
	}, nil
}

// Letters are the dead letters of a table: a stream of their own with one subject per id.
type Letters struct {
	l      *Log
	stream jetstream.Stream
	name   string
}

// Letters opens the table's dead letters, and makes their stream the first time.
func (l *Log) Letters(ctx context.Context) (*Letters, error) {
	d, err := l.ExistingLetters(ctx)
	if d != nil || err != nil {
		return d, err
	}
	name := l.lettersName()
	st, err := l.q.conn.CreateStream(ctx, l.lettersConfig(name))
	return l.lettersOf(name, st, err)
}

// ExistingLetters is Letters for commands, which only look: nil without an error while there is no stream yet.
func (l *Log) ExistingLetters(ctx context.Context) (*Letters, error) {
	name := l.lettersName()
	st, err := l.q.conn.JS.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return l.lettersOf(name, st, err)
}

func (l *Log) lettersName() string { return l.name + "_letters" }

func (l *Log) lettersOf(name string, st jetstream.Stream, err error) (*Letters, error) {
	if err != nil {
		return nil, fmt.Errorf("open dead letters of %s: %w", l.table, err)
	}
	if need, _ := strconv.Atoi(st.CachedInfo().Config.Metadata[conn.MetaFormat]); need > conn.FormatNumber {
		return nil, fmt.Errorf("open dead letters of %s: %w", l.table, &conn.FormatError{What: "stream " + name, Need: need})
	}
	return &Letters{l: l, stream: st, name: name}, nil
}

func (l *Log) lettersConfig(name string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{l.letterSubject("*")}, Description: "Tailrace: dead letters of " + l.table,
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: l.q.opts.Replicas,
		Discard: jetstream.DiscardNew, MaxBytes: l.q.opts.LettersMaxBytes, MaxMsgSize: int32(l.q.conn.MaxMessage()),
		MaxMsgsPerSubject: 1, AllowDirect: false, Duplicates: time.Second,
		Metadata: map[string]string{conn.MetaFormat: strconv.Itoa(conn.FormatNumber), conn.MetaPipeline: l.q.opts.Pipeline},
	}
}

func (l *Log) letterSubject(id string) string {
	return l.subject.entry[:len(l.subject.entry)-len(".e")] + ".letter." + id
}

// Put stores a letter; one that is there already stays as it is, with its attempts, so a replay stores each
// once. When it returns nil the letter is on disk, and only then may the sink's mark pass the change. It
// retries what may pass until ctx ends. ErrFull and ErrTooLarge as for entries: the table halts.
func (d *Letters) Put(ctx context.Context, letter *Letter) error {
	err := conn.Retry(ctx, func() error {
		err := d.write(ctx, letter, 0)
		if conn.OutcomeOf(err) != conn.Fenced {
			return err
		}
		// Rule 1: only a letter that can be read counts. With replicas the server refuses with the same code while an
		// earlier attempt is under way, which no quorum may ever store.
		if _, _, got := d.get(ctx, letter.ID); !errors.Is(got, ErrNoLetter) {
			return got
		}
		return fmt.Errorf("%w: %s", conn.ErrAttemptPending, err.Error())
	})
	return d.wrap("put", letter.ID, err)
}

// RecordRetry notes that the letter was tried again and refused again; behind as in Letter.
func (d *Letters) RecordRetry(ctx context.Context, id, code, reason string, behind bool, now time.Time) error {
	err := conn.Retry(ctx, func() error {
		letter, seq, err := d.get(ctx, id)
		if err != nil {
			return err
		}
		if letter.LastTried.Equal(now) && letter.Code == code && letter.Reason == reason && letter.Behind == behind {
			return nil // an attempt whose acknowledgement was lost
		}
		letter.Attempts++
		letter.Code, letter.Reason, letter.Behind, letter.LastTried = code, reason, behind, now.UTC()
		if err = d.write(ctx, letter, seq); conn.OutcomeOf(err) == conn.Fenced {
			return fmt.Errorf("%w: %s", conn.ErrAttemptPending, err.Error())
		}
		return err
	})
	return d.wrap("update", id, err)
}

// write stores the letter if the newest one of its id is at sequence last; 0: if there is none.
func (d *Letters) write(ctx context.Context, letter *Letter, last uint64) error {
	b, err := encodeLetter(letter)
	if err != nil {
		return err
	}
	ctx, cancel := d.l.q.conn.Ask(ctx)
	defer cancel()
	_, err = d.l.q.conn.JS.PublishMsg(ctx, &nats.Msg{Subject: d.l.letterSubject(letter.ID), Data: b},
		jetstream.WithExpectLastSequencePerSubject(last), jetstream.WithRetryAttempts(0))
	return err
}

func (d *Letters) wrap(verb, id string, err error) error {
	switch conn.OutcomeOf(err) {
	case conn.Stored:
		return nil
	case conn.Full:
		err = fmt.Errorf("%w: %w", ErrFull, err)
	case conn.TooLarge:
		err = fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return fmt.Errorf("%s dead letter %s of %s: %w", verb, id, d.l.table, err)
}

// Get returns a letter; ErrNoLetter when there is none. What cannot be read has CodeUnreadable.
func (d *Letters) Get(ctx context.Context, id string) (*Letter, error) {
	m, err := d.stored(ctx, id)
	if err != nil {
		return nil, err
	}
	return d.readable(id, m.Data)
}

// get returns a letter that can be read, and its sequence.
func (d *Letters) get(ctx context.Context, id string) (*Letter, uint64, error) {
	m, err := d.stored(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	letter, err := decodeLetter(m.Data)
	return letter, m.Sequence, err
}

// readable decodes a letter, and stands in for one that is damaged: it must not hide the others. One of a newer format
// is refused (Rule 11).
func (d *Letters) readable(id string, data []byte) (*Letter, error) {
	letter, err := decodeLetter(data)
	if newer := (*conn.FormatError)(nil); err == nil || errors.As(err, &newer) {
		return letter, err
	}
	return &Letter{ID: id, Table: d.l.table, Code: CodeUnreadable, Reason: err.Error()}, nil
}

// stored returns the message of a letter as the leader has it.
func (d *Letters) stored(ctx context.Context, id string) (*jetstream.RawStreamMsg, error) {
	if id == "" || strings.ContainsAny(id, ".*> \t\r\n") { // one token of a subject
		return nil, fmt.Errorf("get dead letter %q of %s: %w", id, d.l.table, ErrNoLetter)
	}
	m, err := d.l.q.conn.GetMessage(ctx, d.name, conn.MessageRequest{LastFor: d.l.letterSubject(id)})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		err = ErrNoLetter
	}
	if err != nil {
		return nil, fmt.Errorf("get dead letter %s of %s: %w", id, d.l.table, err)
	}
	return m, nil
}

// All yields the letters that were there when it began, each once, oldest first; what cannot be read has
// CodeUnreadable. An error ends it.
func (d *Letters) All(ctx context.Context) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		if err := d.walk(ctx, func(l *Letter) bool { return yield(l, nil) }); err != nil {
			yield(nil, fmt.Errorf("list dead letters of %s: %w", d.l.table, err))
		}
	}
}

// walk is All. A letter that is retried meanwhile moves to the end of the stream; it is yielded from there when that
// happened before it was reached.
func (d *Letters) walk(ctx context.Context, yield func(*Letter) bool) error {
	info, err := d.l.q.conn.StreamInfo(ctx, d.stream)
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	visit := func(m conn.Message) (bool, error) {
		letter, err := d.readable(strings.TrimPrefix(m.Subject, d.l.letterSubject("")), m.Data)
		if err != nil {
			return false, err
		}
		if seen[letter.ID] || m.Seq > info.State.LastSeq && letter.Attempts == 0 {
			return true, nil
		}
		seen[letter.ID] = true
		return yield(letter), nil
	}
	at := uint64(0)
	for pause := conn.LeastPause; ; pause = min(2*pause, conn.MostPause) {
		before := at
		if more, err := d.advance(ctx, &at, visit); !more || err != nil {
			return err
		}
		// Where the consumer has no more to read its replica may lag behind the leader, which knows whether there is more.
		if _, err := d.l.q.conn.Next(ctx, d.name, at+1); errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		if at > before {
			pause = conn.LeastPause
		}
		if err := failure.Pause(ctx, pause); err != nil {
			return err
		}
	}
}

// advance visits what one consumer delivers after sequence *at, and moves that along. It returns false when a visit did.
func (d *Letters) advance(ctx context.Context, at *uint64, visit func(conn.Message) (bool, error)) (bool, error) {
	c, err := d.l.q.conn.Consume(ctx, d.name, *at+1, d.l.metrics.read)
	if err != nil {
		return false, err
	}
	defer c.Close(ctx)
	for c.Pending() > 0 {
		m, err := c.Next(ctx, d.l.q.opts.IdleCheck)
		if conn.Transient(err) && ctx.Err() == nil {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		*at = m.Seq
		if more, err := visit(m); !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// Drop deletes a letter for good: it was delivered, or somebody decided to lose it. ErrNoLetter when there is
// none.
func (d *Letters) Drop(ctx context.Context, id string) error {
	if _, err := d.stored(ctx, id); err != nil {
		return err
	}
	if err := d.stream.Purge(ctx, jetstream.WithPurgeSubject(d.l.letterSubject(id))); err != nil {
		return fmt.Errorf("drop dead letter %s of %s: %w", id, d.l.table, err)
	}
	return nil
}

// Count returns how many letters there are.
func (d *Letters) Count(ctx context.Context) (int, error) {
	info, err := d.l.q.conn.StreamInfo(ctx, d.stream)
	if err != nil {
		return 0, fmt.Errorf("count dead letters of %s: %w", d.l.table, err)
	}
	return int(info.State.Msgs), nil
}

// letterMagic and the format number begin every letter. Rule 11: a newer format is refused.
var letterMagic = []byte("TRLT")

// encodeLetter writes magic, format, the length of the head, the head as JSON, the record compressed.
func encodeLetter(l *Letter) ([]byte, error) {
	head, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encode letter: %w", err)
	}
	b := append(bytes.Clone(letterMagic), conn.FormatNumber)
	b = binary.AppendUvarint(b, uint64(len(head)))
	return append(append(b, head...), s2.Encode(nil, l.Raw)...), nil
}

func decodeLetter(b []byte) (*Letter, error) {
	rest, ok := bytes.CutPrefix(b, letterMagic)
	if !ok || len(rest) < 1 {
		return nil, errors.New("decode letter: not a dead letter of the replicator")
	}
	if rest[0] > conn.FormatNumber {
		return nil, fmt.Errorf("decode letter: %w", &conn.FormatError{What: "dead letter", Need: int(rest[0])})
	}
	size, n := binary.Uvarint(rest[1:])
	if rest = rest[1:]; n <= 0 || size > uint64(len(rest)-n) {
		return nil, errors.New("decode letter: it is cut off")
	}
	l := new(Letter)
	if err := json.Unmarshal(rest[n:n+int(size)], l); err != nil {
		return nil, fmt.Errorf("decode letter: %w", err)
	}
	raw, _, err := frame.Decompress(rest[n+int(size):], nil)
	if err != nil {
		return nil, fmt.Errorf("decode letter: %w", err)
	}
	l.Raw = raw
	return l, nil
}
