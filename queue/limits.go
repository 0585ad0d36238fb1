package queue

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// The fractions of a log's limit up to which entries of a kind are stored. The room above them is
// reserved for the entries without which a log cannot be trimmed or owned: marks, claims, releases,
// controls, starts, gaps, and the one snapshot that trimming needs. Without the reserve, a long
// stall would fill the log, and the server would refuse the marks that make room again.
const (
	framesUpTo  = 0.8 // compared before a frame is stored, so that one frame may exceed it
	reportsUpTo = 0.9 // of beats, graphs, copies and periodic snapshots
)

// ceiling returns how many bytes the log may hold after an entry of this kind was stored. snapshot
// is the size of the last snapshot: two of them fit above the ceiling of frames and reports.
//
// Rule 9: a full log pauses reading, it never drops.
func (i Info) ceiling(kind checkpoint.Kind, snapshot int) uint64 {
	if i.MaxBytes == 0 {
		return math.MaxUint64
	}
	limit, reserve := float64(i.MaxBytes), 2*float64(snapshot)
	reports := uint64(max(0, min(reportsUpTo*limit, limit-reserve)))
	switch kind {
	case checkpoint.KindFrame:
		return min(uint64(framesUpTo*limit), reports)
	case checkpoint.KindBeat, checkpoint.KindGraph, checkpoint.KindSnapshot,
		checkpoint.KindCopy, checkpoint.KindCopyMarks, checkpoint.KindHealed:
		return reports
	}
	return math.MaxUint64 // only the server's own limit applies
}

// mustFit reports whether an entry of this kind is stored however full the log is. Snapshots are
// checked before their first part is appended.
func mustFit(kind checkpoint.Kind) bool {
	switch kind {
	case checkpoint.KindFrame, checkpoint.KindBeat, checkpoint.KindGraph,
		checkpoint.KindCopy, checkpoint.KindCopyMarks, checkpoint.KindHealed:
		return false
	}
	return true
}

// MinMaxBytes returns the lowest limit of a log with snapshots of this size: its top tenth holds
// two of them.
func MinMaxBytes(snapshot int) int64 {
	return int64(math.Ceil(2 * float64(snapshot) / (1 - reportsUpTo)))
}

// SnapshotBytes returns the size of the newest snapshot of the log's state; 0 when there is none.
func (l *Log) SnapshotBytes(ctx context.Context) (int, error) {
	m, err := l.newest(ctx, l.subject.Snapshot)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("find snapshot of %s: %w", l.table, err)
	}
	if e, err := checkpoint.Decode(m.Data); err == nil {
		if b, ok := e.Body.(*checkpoint.Snapshot); ok {
			return b.Part*maxPart + len(m.Data), nil // all parts but the last have the same size
		}
	}
	return 0, nil // not a snapshot of this log: the fold looks for another one
}

// checkRoom returns ErrFull when the rest of the log is reserved for other kinds of entries. size
// is the size of the encoded entry, 0 for a frame.
func (w *Writer) checkRoom(kind checkpoint.Kind, size int) error {
	reason := w.noRoomReason(kind, size)
	if reason == "" {
		return nil
	}
	w.l.metrics.m.refused.WithLabelValues(w.l.table, "full").Inc()
	return fmt.Errorf("append %s to log of %s: %w: %s", kind, w.l.table, ErrFull, reason)
}

// noRoomReason returns why an entry may not be stored now, in the log or on the volume; "" when it
// fits.
func (w *Writer) noRoomReason(kind checkpoint.Kind, size int) string {
	info := &w.folded.info
	frame, ceiling := kind == checkpoint.KindFrame, info.ceiling(kind, w.folded.snapshot)
	switch {
	case frame && info.Bytes < ceiling:
		return w.l.q.diskPauseReason()
	case !frame && info.Bytes+uint64(size) <= ceiling, kind == checkpoint.KindBeat && w.claimNearlyExpired():
		return ""
	}
	return info.usage()
}

// usage returns how full the log is, for messages.
func (i Info) usage() string { return fmt.Sprintf("%.0f %% of its limit in use", 100*i.fraction()) }

// neededLimit returns the stream limit to set on the server: the configured one, or more where
// marks and one snapshot would not fit on top of the bytes that are stored.
func (l *Log) neededLimit(bytes uint64, snapshot int) int64 {
	configured := l.q.opts.MaxBytes
	return max(configured, int64(bytes)+configured/20+2*int64(snapshot)+minTrimVolume)
}

// raiseLimit raises the server's limit to the configured one, and above it where the log is so full
// that not even a claim or marks would fit, because it was filled under another limit. Reading
// stays paused by the configured limit; lowerLimit restores that once the log is trimmed. Errors
// are logged: the next append fails with them.
func (l *Log) raiseLimit(ctx context.Context, bytes uint64, snapshot int) {
	ctx, cancel := l.q.conn.WithAckTimeout(ctx)
	defer cancel()
	info, err := l.stream.Info(ctx)
	if err != nil {
		l.log.Warn("limits of the log not read from the server, leaving them unchanged", zap.Error(err))
		return
	}
	config := info.Config
	if config.MaxBytes = l.neededLimit(max(bytes, info.State.Bytes), snapshot); config.MaxBytes <= info.Config.MaxBytes {
		return
	}
	if _, err := l.q.conn.JS.UpdateStream(ctx, config); err != nil {
		if !l.raiseRefused.Swap(true) { // once: it is tried at every mark
			l.log.Error("limit of the log not raised: the server or its account has no room for it",
				zap.Int64("max_bytes", config.MaxBytes), zap.Error(err))
		}
		return
	}
	l.raiseRefused.Store(false)
	l.log.Info("limit of the log raised", zap.Int64("from", info.Config.MaxBytes), zap.Int64("to", config.MaxBytes))
}

// lowerLimit restores the configured limit after raiseLimit, once the log fits into it again.
func (w *Writer) lowerLimit(ctx context.Context) {
	l, configured, info := w.l, w.l.q.opts.MaxBytes, w.folded.info
	if info.serverLimit > uint64(configured) && l.neededLimit(info.Bytes, w.folded.snapshot) == configured {
		l.configure(ctx, w.folded.snapshot)
	}
}

// claimNearlyExpired reports whether other processes may soon claim the log: then a beat is stored
// even if the log is full. No other process can claim a log of the embedded server.
func (w *Writer) claimNearlyExpired() bool {
	sent, now := w.silence()
	return w.l.q.embedded == nil && now.Since(sent) > w.ttl/2
}

// configure sets the stream's limits to the limits of the options, as far as they leave room on top
// of what it holds. Only the owner calls it. When it fails the old limits stay. snapshot is the
// size of the last snapshot.
func (l *Log) configure(ctx context.Context, snapshot int) {
	ctx, cancel := l.q.conn.WithAckTimeout(ctx)
	defer cancel()
	info, err := l.stream.Info(ctx)
	if err != nil {
		l.log.Warn("limits of the log not read from the server, leaving them unchanged", zap.Error(err))
		return
	}
	old, want := info.Config, info.Config
	want.MaxBytes, want.MaxMsgSize = l.neededLimit(info.State.Bytes, snapshot), int32(l.q.conn.MaxMessage())
	if !l.q.replicasUnset {
		want.Replicas = l.q.opts.Replicas
	}
	if want.MaxBytes == old.MaxBytes && want.MaxMsgSize == old.MaxMsgSize && want.Replicas == old.Replicas {
		return
	}
	if _, err := l.q.conn.JS.UpdateStream(ctx, want); err != nil {
		l.log.Error("limits of the log not changed, the old ones stay", zap.Error(err))
		return
	}
	l.log.Info("limits of the log changed", zap.Int64("max_bytes", want.MaxBytes), zap.Int("replicas", want.Replicas))
}
