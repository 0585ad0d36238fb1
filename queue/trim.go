package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

const (
	// shortenWindowAt is the part of the limit above which the replay window is shortened, oldest
	// entries first.
	shortenWindowAt = 0.6
	// minTrimVolume is how many bytes must follow the last snapshot before trimming appends another
	// one.
	minTrimVolume = 64 << 10
)

// Trim deletes entries that are not needed any more: those below the sinks' marks, below the first
// part of the last complete snapshot, outside the replay window (while there is room for one) and
// below the caller's bound. That bound is the lowest sequence that a sink which the caller runs has
// not applied, so that sinks without a mark yet count too; math.MaxUint64 means no bound.
//
// It purges by sequence, always from the start of the log, and only entries below an acknowledged
// append of this epoch. Otherwise an owner would delete entries that the new owner needs, after it
// lost its claim or its log went back to an older copy. When the log is above 60 % of its limit and
// only the last snapshot prevents trimming, Trim appends a new snapshot first. It returns the first
// sequence that remains. ErrOutcomeUnknown and ErrLost as from Append.
func (w *Writer) Trim(ctx context.Context, below uint64) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.checkUsable(ctx); err != nil {
		return 0, err
	}
	info, err := w.l.Info(ctx)
	if err != nil {
		return 0, w.noteStreamGone(err)
	}
	if info.Last != w.folded.state.Seq {
		w.setUnknown(errors.New("the log holds messages that were not read"))
		return info.First, fmt.Errorf("trim log of %s: %w: %w", w.l.table, ErrOutcomeUnknown, w.unknown)
	}
	w.folded.info = info
	free, err := w.trimBound(ctx, info, below)
	if err != nil {
		return info.First, err
	}
	s, crowded := w.folded.state, info.fraction() > shortenWindowAt
	if free > s.SnapshotFirst && crowded && s.BytesSinceSnapshot > max(minTrimVolume, int64(w.folded.snapshot)) {
		// A log that is too full for a snapshot is trimmed below the last one first.
		if err := w.snapshot(ctx, s.SnapshotFirst <= info.First); err != nil && !errors.Is(err, ErrFull) {
			return info.First, fmt.Errorf("trim log of %s: %w", w.l.table, err)
		}
	}
	floor := w.folded.state.TrimBelow(info.First, free, w.lastAcked)
	if floor == 0 {
		return info.First, nil
	}
	if err := w.l.purge(ctx, floor); err != nil {
		return info.First, fmt.Errorf("trim log of %s: %w", w.l.table, err)
	}
	w.l.log.Debug("log trimmed", zap.Uint64("from", info.First), zap.Uint64("to", floor-1))
	if info, err = w.l.Info(ctx); err == nil {
		w.folded.info = info
	}
	w.lowerLimit(ctx)
	return floor, nil
}

// purge deletes the entries below a sequence.
func (l *Log) purge(ctx context.Context, below uint64) error {
	return l.q.conn.Purge(ctx, l.name, conn.PurgeRequest{Below: below})
}

// noteStreamGone returns err. If err means that the stream is gone or was replaced, it first
// records that the outcome is unknown, so that the caller has to call Recover, which ends the
// writer.
func (w *Writer) noteStreamGone(err error) error {
	if errors.Is(err, ErrEmptied) && w.unknown == nil {
		w.setUnknown(err)
	}
	return err
}

// trimBound returns the first sequence that a sink or the replay window needs, at most below.
func (w *Writer) trimBound(ctx context.Context, info Info, below uint64) (uint64, error) {
	applied := below
	if s := w.folded.state; len(s.Marks) > 0 {
		applied = min(applied, s.LowMark()+1)
	}
	applied = min(applied, info.Last+1)
	if w.l.q.opts.ReplayWindow == 0 || applied <= info.First {
		return applied, nil
	}
	window, err := w.l.seqAt(ctx, info, info.Now.Add(-w.l.q.opts.ReplayWindow))
	if err != nil {
		return 0, err
	}
	return min(applied, max(window, shortenedWindow(info))), nil
}

// shortenedWindow returns the first sequence that the replay window keeps when the log is too full
// for all of it. The sizes of single entries are not known, so it assumes that all are equal; the
// next call corrects the difference.
func shortenedWindow(info Info) uint64 {
	excess := info.fraction() - shortenWindowAt
	if excess <= 0 || info.empty() {
		return 0
	}
	n := float64(info.Last - info.First + 1)
	return info.First + uint64(math.Ceil(n*excess/info.fraction()))
}

// seqAt returns the sequence of the first message stored at or after t.
func (l *Log) seqAt(ctx context.Context, info Info, t time.Time) (uint64, error) {
	if !info.Oldest.Before(t) {
		return info.First, nil
	}
	ctx, cancel := l.q.conn.WithAckTimeout(ctx)
	defer cancel()
	c, err := l.q.conn.JS.CreateConsumer(ctx, l.name, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &t, AckPolicy: jetstream.AckNonePolicy,
		HeadersOnly: true, MemoryStorage: true, Replicas: 1, InactiveThreshold: 10 * time.Second,
	})
	if err != nil {
		return 0, fmt.Errorf("find time in log of %s: %w", l.table, err)
	}
	first := c.CachedInfo().Delivered.Stream + 1
	err = l.q.conn.JS.DeleteConsumer(ctx, l.name, c.CachedInfo().Name)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return 0, fmt.Errorf("find time in log of %s: %w", l.table, err)
	}
	return first, nil
}

// SeqAt returns the sequence of the first entry stored at or after t: Last + 1 when there is none.
func (l *Log) SeqAt(ctx context.Context, t time.Time) (uint64, error) {
	info, err := l.Info(ctx)
	if err != nil {
		return 0, err
	}
	if info.empty() {
		return info.First, nil
	}
	return l.seqAt(ctx, info, t)
}

// Pressure is how full a log is.
type Pressure struct {
	Fraction float64 // of the limit, 0 to 1; 0 without a limit
	Bytes    uint64
	Limit    uint64
	Oldest   time.Time // when the oldest entry was stored; zero in an empty log
	// HoursLeft is the time until reading pauses if the log goes on filling as fast as it did since
	// Oldest and nothing is trimmed; +Inf without a limit or a rate.
	HoursLeft float64
	// Pause is true while reading must pause: above 80 %, or while the volume of an embedded store
	// has little room.
	Pause           bool
	Reason          string // of the pause
	TooFullForBeats bool   // beats are refused, except where the claim would expire
}

// Pressure reads from the server how full the log is.
func (l *Log) Pressure(ctx context.Context) (Pressure, error) {
	info, err := l.Info(ctx)
	if err != nil {
		return Pressure{}, err
	}
	return l.pressure(info, 0), nil
}

// Pressure returns how full the log is. Append compares with the newest answer: after ErrFull it
// accepts frames again once Trim or Pressure has seen enough room.
func (w *Writer) Pressure(ctx context.Context) (Pressure, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	info, err := w.l.Info(ctx)
	if err != nil {
		return Pressure{}, w.noteStreamGone(err)
	}
	w.folded.info = info
	return w.l.pressure(info, w.folded.snapshot), nil
}

// pressure computes how full the log is; snapshot is the size of the last snapshot.
func (l *Log) pressure(i Info, snapshot int) Pressure {
	p := Pressure{Fraction: i.fraction(), Bytes: i.Bytes, Limit: i.MaxBytes, Oldest: i.Oldest, HoursLeft: math.Inf(1)}
	pauseAt := i.ceiling(checkpoint.KindFrame, snapshot)
	if p.Pause = i.Bytes >= pauseAt; p.Pause {
		p.Reason = i.usage()
	} else if p.Reason = l.q.diskPauseReason(); p.Reason != "" {
		p.Pause = true
	}
	p.TooFullForBeats = i.Bytes+2*perMessage > i.ceiling(checkpoint.KindBeat, snapshot)
	if age := i.Now.Sub(i.Oldest); !i.Oldest.IsZero() && age > time.Minute && i.Bytes > 0 && i.MaxBytes > 0 {
		left := float64(pauseAt) - float64(i.Bytes)
		p.HoursLeft = max(0, left/float64(i.Bytes)*age.Hours())
	}
	return p
}
