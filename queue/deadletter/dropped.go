package deadletter

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// ErrDropped means that an operator has dropped the letter of this id in the last day: its change
// is given up, and the letter is not stored again.
var ErrDropped = errors.New("the dead letter was dropped")

// CodeDropped is the code of a list of dropped letters.
const CodeDropped = "dropped"

const (
	keepDropped  = 24 * time.Hour // unless Options set another time
	droppedToken = "dropped."     // between the prefix of the subjects and the name of a list
	listedAtOnce = 1000           // ids in one list
)

// Drop deletes letters for good. ErrNotFound when there is none of a single id; of several, those
// that are gone are passed over.
//
// A replay of the change, or a copy of an earlier Put that arrives late, does not bring a dropped
// letter back: Drop also stores a list of the ids, next to the letters. It is stored after the
// letters are gone, for their stream may be full; what comes back before that, the owner of the log
// sweeps away once it has read the list.
func (s *Store) Drop(ctx context.Context, ids ...string) error {
	for batch := range slices.Chunk(ids, listedAtOnce) {
		for _, id := range batch {
			if err := s.Forget(ctx, id); err != nil && (len(ids) == 1 || !errors.Is(err, ErrNotFound)) {
				return err
			}
		}
		if err := s.list(ctx, batch); err != nil {
			return fmt.Errorf("note what was dropped of %s: %w", s.opts.Table, err)
		}
	}
	return nil
}

// Forget deletes a letter after its change was applied, or became needless. It returns ErrNotFound
// when there is none.
func (s *Store) Forget(ctx context.Context, id string) error {
	if _, err := s.getMessage(ctx, id); err != nil {
		return err
	}
	if err := s.keyed.Purge(ctx, id); err != nil {
		return fmt.Errorf("delete dead letter %s of %s: %w", id, s.opts.Table, err)
	}
	return nil
}

// list stores a list of dropped letters.
func (s *Store) list(ctx context.Context, ids []string) error {
	name, now := droppedToken+rand.Text(), time.Now().UTC()
	data, err := encode(&Letter{
		ID: name, Table: s.opts.Table, Code: CodeDropped, Reason: "a list of letters that were dropped", FirstSeen: now,
		LastTried: now, Raw: []byte(strings.Join(ids, "\n")),
	})
	if err != nil {
		return err
	}
	return conn.Retry(ctx, func() error { // twice the same list does no harm
		err := s.keyed.Put(ctx, name, data, 0)
		if conn.OutcomeOf(err) == conn.Fenced {
			return nil
		}
		return err
	})
}

// Look returns how many letters there are. It reads the lists of dropped letters that are new to
// this Store, and reports whether there were some: then letters may have to be swept away, by All.
func (s *Store) Look(ctx context.Context) (n int, dropped bool, err error) {
	info, err := s.conn.StreamInfo(ctx, s.keyed.Stream, jetstream.WithSubjectFilter(s.opts.Subject+droppedToken+"*"))
	if err != nil {
		return 0, false, fmt.Errorf("count dead letters of %s: %w", s.opts.Table, err)
	}
	for subject := range info.State.Subjects {
		if s.knowsList(subject) {
			continue
		}
		if err := s.readList(ctx, subject); err != nil {
			return 0, false, fmt.Errorf("read what was dropped of %s: %w", s.opts.Table, err)
		}
		dropped = true
	}
	return int(info.State.Msgs) - len(info.State.Subjects), dropped, nil
}

// Count returns how many letters there are.
func (s *Store) Count(ctx context.Context) (int, error) {
	n, _, err := s.Look(ctx)
	return n, err
}

func (s *Store) knowsList(subject string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists[subject]
}

// readList takes a list over, or deletes one that has served its time, which the owner of the log
// does.
func (s *Store) readList(ctx context.Context, subject string) error {
	m, err := s.conn.GetMessage(ctx, s.opts.Stream, conn.MessageRequest{LastFor: subject})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil // the owner has deleted it
	}
	if err != nil {
		return err
	}
	if s.owner && time.Since(m.Time) > cmp.Or(s.opts.KeepDropped, keepDropped) {
		_ = s.keyed.Purge(ctx, s.keyed.ID(subject)) // else the next look does
		return nil
	}
	x, err := decode(m.Data)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[subject] = true
	for id := range strings.SplitSeq(string(x.Raw), "\n") {
		s.dropped[id] = true
	}
	return nil
}

// isDropped reports whether a letter was dropped, according to the lists that were read.
func (s *Store) isDropped(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped[id]
}

// sweep returns whether a message of the stream is no letter to show: a list, or a letter that has
// come back after it was dropped. The owner of the log deletes such a letter.
func (s *Store) sweep(ctx context.Context, id string) bool {
	switch {
	case strings.HasPrefix(id, droppedToken):
		return true
	case !s.isDropped(id):
		return false
	case s.owner:
		_ = s.keyed.Purge(ctx, id) // else the next listing does: what it shows does not depend on it
	}
	return true
}
