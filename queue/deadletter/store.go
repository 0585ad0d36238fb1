package deadletter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

// ErrNotFound means that there is no dead letter of that id.
var ErrNotFound = errors.New("no such dead letter")

// Options name the stream of the dead letters of a table.
type Options struct {
	Pipeline string
	Table    string
	Stream   string // its name
	Subject  string // prefix of its subjects; the id of a letter follows

	Replicas  int
	MaxBytes  int64
	IdleCheck time.Duration      // how long All waits for a message before it asks the leader
	BytesRead prometheus.Counter // by All
	// KeepDropped is how long a dropped letter stays dropped, as long as DynamoDB keeps the record:
	// a replay may make the letter again. 0: 24 hours.
	KeepDropped time.Duration
}

// Store holds the dead letters of a table: a stream of their own with one subject per id. Its
// methods may be called by several goroutines.
type Store struct {
	conn  *conn.Conn
	opts  Options
	keyed *conn.Keyed
	owner bool // of the log

	mu      sync.Mutex      // covers the rest: what was dropped, as listed so far
	lists   map[string]bool // by subject
	dropped map[string]bool // by id
}

// Open opens the dead letters of a table for the owner of its log, and makes their stream the first
// time.
func Open(ctx context.Context, c *conn.Conn, o Options) (*Store, error) {
	s, err := OpenExisting(ctx, c, o)
	if s != nil || err != nil {
		if s != nil {
			s.owner = true
		}
		return s, err
	}
	cfg := conn.KeyedConfig(o.Stream, o.Subject, o.Pipeline)
	cfg.Description, cfg.Replicas = "Tailrace: dead letters of "+o.Table, o.Replicas
	cfg.MaxBytes, cfg.MaxMsgSize = o.MaxBytes, int32(c.MaxMessage())
	cfg.Subjects = append(cfg.Subjects, o.Subject+droppedToken+"*")
	k, err := c.MakeKeyed(ctx, cfg, o.Subject)
	if s, err = newStore(c, o, k, err); s != nil {
		s.owner = true
	}
	return s, err
}

// OpenExisting is Open for commands, which write nothing: nil without an error while there is no
// stream yet.
func OpenExisting(ctx context.Context, c *conn.Conn, o Options) (*Store, error) {
	k, err := c.OpenKeyed(ctx, o.Stream, o.Subject)
	return newStore(c, o, k, err)
}

func newStore(c *conn.Conn, o Options, k *conn.Keyed, err error) (*Store, error) {
	if err != nil {
		return nil, fmt.Errorf("open dead letters of %s: %w", o.Table, err)
	}
	if k == nil {
		return nil, nil
	}
	return &Store{conn: c, opts: o, keyed: k, lists: map[string]bool{}, dropped: map[string]bool{}}, nil
}

// Put stores a letter. If one of this id is stored already, Put leaves it as it is, with its
// attempts, so that a replay stores each letter once. Only when Put has returned nil, which means
// that the letter is on disk, may the sink's mark pass the change. It retries transient errors
// until ctx ends. After conn.ErrFull and frame.ErrTooLarge the table halts. ErrDropped: the letter
// is given up.
func (s *Store) Put(ctx context.Context, letter *Letter) error {
	if s.isDropped(letter.ID) {
		return ErrDropped
	}
	readBack := func() error {
		_, _, err := s.getDecoded(ctx, letter.ID)
		return err
	}
	err := s.keyed.PutFirst(ctx, func() error { return s.write(ctx, letter, 0) }, readBack, ErrNotFound)
	return s.wrapError("put", letter.ID, err)
}

// Retried is the outcome of a retry after which the letter stays.
type Retried struct {
	Code, Reason string
	Behind       bool           // see Letter
	Resynced     change.Version // see Letter; 0 leaves it as it is
	At           time.Time
}

// RecordRetry records that the letter's change was tried again and refused again.
func (s *Store) RecordRetry(ctx context.Context, id string, r Retried) error {
	err := s.keyed.Replace(ctx, func() error {
		letter, seq, err := s.getDecoded(ctx, id)
		if err != nil {
			return err
		}
		if letter.LastTried.Equal(r.At) && letter.Code == r.Code && letter.Reason == r.Reason &&
			letter.Behind == r.Behind && letter.Resynced >= r.Resynced {
			return nil // an earlier attempt was stored, only its acknowledgement was lost
		}
		letter.Attempts++
		letter.Code, letter.Reason, letter.Behind, letter.LastTried = r.Code, r.Reason, r.Behind, r.At.UTC()
		letter.Resynced = max(letter.Resynced, r.Resynced)
		return s.write(ctx, letter, seq)
	})
	return s.wrapError("update", id, err)
}

// write stores the letter if the stored one of its id is at sequence last; with last 0, if none is
// stored.
func (s *Store) write(ctx context.Context, letter *Letter, last uint64) error {
	b, err := encode(letter)
	if err != nil {
		return err
	}
	return s.keyed.Put(ctx, letter.ID, b, last)
}

// wrapError adds the verb, the letter's id, and ErrFull or ErrTooLarge where they apply. It returns
// nil for nil.
func (s *Store) wrapError(verb, id string, err error) error {
	switch conn.OutcomeOf(err) {
	case conn.Stored:
		return nil
	case conn.Full:
		err = fmt.Errorf("%w: %w", conn.ErrFull, err)
	case conn.TooLarge:
		err = fmt.Errorf("%w: %w", frame.ErrTooLarge, err)
	}
	return fmt.Errorf("%s dead letter %s of %s: %w", verb, id, s.opts.Table, err)
}

// Get returns a letter; ErrNotFound when there is none. A letter that cannot be read has
// CodeUnreadable.
func (s *Store) Get(ctx context.Context, id string) (*Letter, error) {
	m, err := s.getMessage(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.decodeOrPlaceholder(id, m.Data)
}

// getDecoded returns a letter and its sequence; an error when it cannot be read.
func (s *Store) getDecoded(ctx context.Context, id string) (*Letter, uint64, error) {
	m, err := s.getMessage(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	letter, err := decode(m.Data)
	return letter, m.Sequence, err
}

// decodeOrPlaceholder decodes a letter. For a damaged one it returns a letter with CodeUnreadable,
// so that the others can still be listed. A newer format is an error (Rule 11).
func (s *Store) decodeOrPlaceholder(id string, data []byte) (*Letter, error) {
	letter, err := decode(data)
	if newer := (*conn.FormatError)(nil); err == nil || errors.As(err, &newer) {
		return letter, err
	}
	return &Letter{ID: id, Table: s.opts.Table, Code: CodeUnreadable, Reason: err.Error()}, nil
}

// getMessage returns the message of a letter as the stream's leader has it.
func (s *Store) getMessage(ctx context.Context, id string) (*jetstream.RawStreamMsg, error) {
	m, err := s.keyed.Get(ctx, id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get dead letter %q of %s: %w", id, s.opts.Table, err)
	}
	return m, nil
}

// All yields the letters that were stored when it began, each once, oldest first. Those that cannot
// be read have CodeUnreadable. It ends after an error.
func (s *Store) All(ctx context.Context) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		if err := s.walk(ctx, func(l *Letter) bool { return yield(l, nil) }); err != nil {
			yield(nil, fmt.Errorf("list dead letters of %s: %w", s.opts.Table, err))
		}
	}
}

// walk calls yield with each letter until that returns false. A letter that is retried meanwhile
// moves to the end of the stream, and is yielded from there if it was not yielded before.
func (s *Store) walk(ctx context.Context, yield func(*Letter) bool) error {
	if _, _, err := s.Look(ctx); err != nil {
		return err
	}
	info, err := s.conn.StreamInfo(ctx, s.keyed.Stream)
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	visit := func(m conn.Message) (bool, error) {
		if s.sweep(ctx, s.keyed.ID(m.Subject)) {
			return true, nil
		}
		letter, err := s.decodeOrPlaceholder(s.keyed.ID(m.Subject), m.Data)
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
		if more, err := s.visitDelivered(ctx, &at, visit); !more || err != nil {
			return err
		}
		// The consumer has no more to deliver, but its replica may lag: check with the leader
		// whether there is more.
		if _, err := s.conn.Next(ctx, s.opts.Stream, at+1); errors.Is(err, jetstream.ErrMsgNotFound) {
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

// visitDelivered calls visit with each message that one consumer delivers after sequence *at, and
// advances *at. It returns false once visit did.
func (s *Store) visitDelivered(ctx context.Context, at *uint64, visit func(conn.Message) (bool, error)) (bool, error) {
	c, err := s.conn.Consume(ctx, s.opts.Stream, *at+1, s.opts.BytesRead)
	if err != nil {
		return false, err
	}
	defer c.Close(ctx)
	for c.Pending() > 0 {
		m, err := c.Next(ctx, s.opts.IdleCheck)
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
