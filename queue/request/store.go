package request

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// MaxWaiting is how many bytes of chunks may wait for a table. A command that requests more waits.
const MaxWaiting = 16 << 20

// MaxBytes is the hard limit of the stream: what waits, and what was done and is not deleted yet.
const MaxBytes = 2 * MaxWaiting

// keepOutcome is how long an outcome is kept that no command has fetched.
const keepOutcome = 24 * time.Hour

// ErrNotFound means that there is no chunk of that id.
var ErrNotFound = errors.New("no such request")

// Options name the stream of the requests of a table.
type Options struct {
	Pipeline string
	Table    string
	Stream   string // its name
	Subject  string // prefix of its subjects; the id of a chunk follows
	Replicas int
}

// Store holds the requests of a table: a stream of their own with one subject per chunk. Its
// methods may be called by several goroutines.
type Store struct {
	conn  *conn.Conn
	opts  Options
	keyed *conn.Keyed
}

// Open opens the requests of a table, and makes their stream the first time.
func Open(ctx context.Context, c *conn.Conn, o Options) (*Store, error) {
	cfg := conn.KeyedConfig(o.Stream, o.Subject, o.Pipeline)
	cfg.Description, cfg.Replicas = "Tailrace: requests for "+o.Table, o.Replicas
	cfg.MaxBytes, cfg.MaxMsgSize = MaxBytes, int32(c.MaxMessage())
	k, err := c.MakeKeyed(ctx, cfg, o.Subject)
	return newStore(c, o, k, err)
}

// OpenExisting is Open for the owner of the log: nil without an error while there is no stream yet.
func OpenExisting(ctx context.Context, c *conn.Conn, o Options) (*Store, error) {
	k, err := c.OpenKeyed(ctx, o.Stream, o.Subject)
	return newStore(c, o, k, err)
}

func newStore(c *conn.Conn, o Options, k *conn.Keyed, err error) (*Store, error) {
	if err != nil {
		return nil, fmt.Errorf("open requests of %s: %w", o.Table, err)
	}
	if k == nil {
		return nil, nil
	}
	return &Store{conn: c, opts: o, keyed: k}, nil
}

// Ask stores a chunk for the owner. It waits while MaxWaiting bytes wait already, and retries
// transient errors, until ctx ends. When it returns nil the chunk is on disk.
func (s *Store) Ask(ctx context.Context, c *Chunk) error {
	put := func() error {
		if err := s.awaitRoom(ctx); err != nil {
			return err
		}
		return s.write(ctx, c, 0)
	}
	readBack := func() error {
		_, _, err := s.get(ctx, c.ID)
		return err
	}
	err := s.keyed.PutFirst(ctx, put, readBack, ErrNotFound)
	return s.wrap("store", c.ID, err)
}

// awaitRoom waits until less than MaxWaiting bytes are stored.
func (s *Store) awaitRoom(ctx context.Context) error {
	for {
		info, err := s.conn.StreamInfo(ctx, s.keyed.Stream)
		if err != nil || info.State.Bytes < MaxWaiting {
			return err
		}
		if err := failure.Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// Next returns the oldest chunk without an outcome; nil when none waits. Only the owner of the log
// calls it. Outcomes that no command has fetched for a day are deleted.
func (s *Store) Next(ctx context.Context, now time.Time) (*Chunk, error) {
	c, _, err := s.NextAfter(ctx, now, 0)
	return c, err
}

// NextAfter is Next for chunks behind a place in the stream, and returns the chunk's place.
func (s *Store) NextAfter(ctx context.Context, now time.Time, after uint64) (*Chunk, uint64, error) {
	for at := after + 1; ; {
		m, err := s.conn.Next(ctx, s.opts.Stream, at)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, 0, nil
		}
		if err != nil {
			return nil, 0, s.wrap("look for", "one", err)
		}
		at = m.Sequence + 1
		c, err := decode(m.Data)
		id := s.keyed.ID(m.Subject)
		switch {
		case errors.Is(err, errForeign), err == nil && c.ID != id: // its outcome would be stored elsewhere
			err = s.keyed.Purge(ctx, id)
		case err != nil:
		case c.Outcome == nil:
			return c, m.Sequence, nil
		case now.Sub(c.Outcome.Done) > keepOutcome:
			err = s.keyed.Purge(ctx, c.ID)
		}
		if err != nil {
			return nil, 0, s.wrap("look for", "one", err)
		}
	}
}

// Waiting returns the chunks of the command that requested c that have no outcome yet, c among
// them, oldest first. Only the owner of the log calls it.
func (s *Store) Waiting(ctx context.Context, c *Chunk) ([]*Chunk, error) {
	all, err := s.Pending(ctx)
	return slices.DeleteFunc(all, func(x *Chunk) bool { return x.Command() != c.Command() }), err
}

// Pending returns the chunks that have no outcome yet, oldest first. Unlike Next it writes nothing,
// so that commands may call it.
func (s *Store) Pending(ctx context.Context) (all []*Chunk, err error) {
	for at := uint64(1); ; {
		m, err := s.conn.Next(ctx, s.opts.Stream, at)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return all, nil
		}
		if err != nil {
			return nil, s.wrap("look for", "one", err)
		}
		at = m.Sequence + 1
		if x, err := decode(m.Data); err == nil && x.Outcome == nil {
			all = append(all, x)
		}
	}
}

// Finish stores the outcome of a chunk over it. Only the owner of the log calls it, and only when
// everything in the outcome is durable. A chunk that was withdrawn meanwhile is not stored again.
func (s *Store) Finish(ctx context.Context, c *Chunk, o *Outcome) error {
	err := s.keyed.Replace(ctx, func() error {
		stored, seq, err := s.get(ctx, c.ID)
		if errors.Is(err, ErrNotFound) || err == nil && stored.Outcome != nil {
			return nil
		}
		if err != nil {
			return err
		}
		done := *stored
		done.Outcome, done.Items = o, nil // the requester has the keys
		return s.write(ctx, &done, seq)
	})
	return s.wrap("finish", c.ID, err)
}

// Await waits until a chunk has an outcome, fetches it and deletes the chunk. ErrNotFound when it
// is not there.
//
// Rule 15: the outcome is the answer, and is returned whatever becomes of the deletion. An error of
// the deletion would make the caller try again, and find nothing: the server may have deleted the
// chunk and lost the acknowledgement. A chunk that stays is deleted by the owner after a day.
func (s *Store) Await(ctx context.Context, id string) (*Outcome, error) {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, _, err := s.get(ctx, id)
		if errors.Is(err, ErrNotFound) {
			err = s.confirmGone(ctx, id)
		}
		switch {
		case err != nil && !conn.Transient(err):
			return nil, s.wrap("wait for", id, err)
		case err == nil && c.Outcome != nil:
			_ = s.keyed.Purge(ctx, id)
			return c.Outcome, nil
		}
		if err := failure.Pause(ctx, pause); err != nil {
			return nil, s.wrap("wait for", id, err)
		}
	}
}

// confirmGone returns ErrNotFound for a chunk that was not found and that the stream does not list
// either. Otherwise it returns a transient error.
//
// Rule 13: a command must not conclude from one answer that a request is gone while its outcome
// exists.
func (s *Store) confirmGone(ctx context.Context, id string) error {
	subject := s.opts.Subject + id
	info, err := s.conn.StreamInfo(ctx, s.keyed.Stream, jetstream.WithSubjectFilter(subject))
	switch {
	case err != nil:
		return err
	case info.State.Subjects[subject] > 0:
		return fmt.Errorf("%w: it was not found, and is listed", conn.ErrAttemptPending)
	}
	return ErrNotFound
}

// Withdraw deletes a chunk. The owner may have begun to work on it.
func (s *Store) Withdraw(ctx context.Context, id string) error {
	return s.wrap("withdraw", id, s.keyed.Purge(ctx, id))
}

// Count returns how many chunks are stored, those with an outcome too.
func (s *Store) Count(ctx context.Context) (int, error) {
	info, err := s.conn.StreamInfo(ctx, s.keyed.Stream)
	if err != nil {
		return 0, fmt.Errorf("count requests of %s: %w", s.opts.Table, err)
	}
	return int(info.State.Msgs), nil
}

// Position returns when the stream was made, and the sequence of its newest message ever. Each
// request and each outcome raises it, and deletions do not lower it.
func (s *Store) Position(ctx context.Context) (created time.Time, last uint64, err error) {
	info, err := s.conn.StreamInfo(ctx, s.keyed.Stream)
	if err != nil {
		return created, 0, fmt.Errorf("look at requests of %s: %w", s.opts.Table, err)
	}
	return info.Created, info.State.LastSeq, nil
}

// write stores the chunk if the stored one of its id is at sequence last; with last 0, if none is
// stored.
func (s *Store) write(ctx context.Context, c *Chunk, last uint64) error {
	b, err := encode(c)
	if err != nil {
		return err
	}
	return s.keyed.Put(ctx, c.ID, b, last)
}

// get returns a chunk and its sequence, as the stream's leader has it.
func (s *Store) get(ctx context.Context, id string) (*Chunk, uint64, error) {
	m, err := s.keyed.Get(ctx, id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, 0, ErrNotFound
	}
	if err != nil {
		return nil, 0, err
	}
	c, err := decode(m.Data)
	return c, m.Sequence, err
}

func (s *Store) wrap(verb, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s request %s of %s: %w", verb, id, s.opts.Table, err)
}
