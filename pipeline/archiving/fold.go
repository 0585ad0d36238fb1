package archiving

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/queue/journal"
	"github.com/tailrace-cdc/replicator/sink/archive/ledger"
)

// Fold returns the state that the archive's stream of a table holds, for commands.
func Fold(ctx context.Context, j *journal.Journal) (*ledger.State, error) {
	s, _, _, err := fold(ctx, j)
	return s, err
}

// fold returns the state of the archive's stream. If the stream cannot be read any more, the error
// explains what to do: it was purged by hand, put back to an older copy, or is damaged. What its
// owner trims meanwhile is not missing: a newer snapshot replaces it.
func fold(ctx context.Context, j *journal.Journal) (*ledger.State, journal.End, journal.Info, error) {
	s, end, info, err := foldStored(ctx, j)
	for errors.Is(err, journal.ErrGap) {
		now, infoErr := j.Info(ctx)
		if infoErr != nil || now.First <= info.First {
			break
		}
		s, end, info, err = foldStored(ctx, j)
	}
	if errors.Is(err, ledger.ErrFork) || errors.Is(err, ledger.ErrForeign) || errors.Is(err, journal.ErrGap) {
		err = fmt.Errorf("%w; if it stays so, delete the stream: `nats stream rm %s`: the archive begins a new one, and "+
			"the hours of which this one alone held events are incomplete", err, j.Name())
	}
	return s, end, info, err
}

// foldStored reads the state of the archive's stream from its last complete snapshot on, up to the
// newest entry that the stream's leader holds.
//
// Rule 4: only what is stored counts. A fold is believed when the leader has its last entry; the
// append that follows names it, so that a fold which ended early stores nothing.
func foldStored(ctx context.Context, j *journal.Journal) (*ledger.State, journal.End, journal.Info, error) {
	info, err := j.Info(ctx)
	if err != nil || info.First > info.Last {
		s := ledger.New()
		return s, journal.End{Last: info.Last}, info, err
	}
	s, err := newestSnapshot(ctx, j, info)
	if err != nil {
		return nil, journal.End{}, info, err
	}
	from := s.Seq + 1
	if s.Seq == 0 {
		from = info.First
	}
	r := j.Read(from)
	defer r.Close(context.WithoutCancel(ctx))
	var last []byte
	for s.Seq < info.Last {
		seq, msg, err := r.Next(ctx)
		if err != nil {
			return nil, journal.End{}, info, err
		}
		if _, err := s.Apply(seq, msg); err != nil {
			return nil, journal.End{}, info, fmt.Errorf("fold the archive's stream: %w", err)
		}
		last = msg
	}
	stored, id, err := j.At(ctx, info.Last)
	if err != nil {
		return nil, journal.End{}, info, err
	}
	if last != nil && !bytes.Equal(stored, last) {
		return nil, journal.End{}, info, fmt.Errorf("fold the archive's stream: entry %d: %w", info.Last, ledger.ErrFork)
	}
	return s, journal.End{Last: info.Last, ID: id}, info, nil
}

// decode reads an entry. A stray message is an entry without a body.
func decode(seq uint64, msg []byte) (*ledger.Entry, error) {
	if ledger.Stray(msg) {
		return new(ledger.Entry), nil
	}
	e, err := ledger.Decode(msg)
	if err != nil {
		return nil, fmt.Errorf("read entry %d of the archive's stream: %w", seq, err)
	}
	return e, nil
}

// newestSnapshot returns the state of the newest complete snapshot; an empty one where the stream
// begins at its first entry and has none.
func newestSnapshot(ctx context.Context, j *journal.Journal, info journal.Info) (*ledger.State, error) {
	seq, msg, err := j.Newest(ctx)
	if err != nil {
		return nil, err
	}
	for seq >= info.First && seq != 0 {
		s, before, err := restore(ctx, j, seq, msg)
		if err == nil || !errors.Is(err, errIncomplete) {
			return s, err
		}
		if seq, msg, err = olderSnapshot(ctx, j, before, info.First); err != nil {
			return nil, err
		}
	}
	return ledger.New(), nil
}

// errIncomplete means that a snapshot lacks parts: its writer ended in between.
var errIncomplete = errors.New("snapshot is not complete")

// restore reads the snapshot that has msg, at seq, as its last part; with errIncomplete it returns
// where to look for an older one.
func restore(ctx context.Context, j *journal.Journal, seq uint64, msg []byte) (*ledger.State, uint64, error) {
	if ledger.Stray(msg) {
		return nil, seq - 1, errIncomplete
	}
	e, err := ledger.Decode(msg)
	if err != nil {
		return nil, 0, fmt.Errorf("read snapshot of the archive: %w", err)
	}
	b, ok := e.Body.(*ledger.Snapshot)
	if !ok || b.Part != b.Parts-1 || seq-b.First != uint64(b.Part) {
		return nil, min(seq, max(b.First, 1)) - 1, errIncomplete
	}
	parts := make([][]byte, 0, b.Parts)
	for at := b.First; at < seq; at++ {
		part, _, err := j.At(ctx, at)
		if err != nil {
			return nil, 0, err
		}
		parts = append(parts, part)
	}
	s, err := ledger.Restore(b.First, append(parts, msg))
	return s, 0, err
}

// olderSnapshot looks for the last part of a snapshot at or before a sequence, and at or behind
// first; 0 for none.
func olderSnapshot(ctx context.Context, j *journal.Journal, seq, first uint64) (uint64, []byte, error) {
	for ; seq >= first && seq > 0; seq-- {
		msg, _, err := j.At(ctx, seq)
		if err != nil {
			return 0, nil, err
		}
		if e, err := ledger.Decode(msg); err == nil && e.Kind == ledger.KindSnapshot {
			return seq, msg, nil
		}
	}
	return 0, nil, nil
}
