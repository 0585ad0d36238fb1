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
)

// The parts of a log's limit that may be in use after an entry was stored. The room above them is reserved for the
// entries without which a log cannot be trimmed or owned: marks, claims, releases, controls, starts, gaps, and the
// one snapshot that trimming needs. Without the reserve, a long stall would fill the log, and the server would refuse
// the marks that make room again.
const (
	framesUpTo  = 0.8 // checked before a frame is stored: one frame may reach above it
	reportsUpTo = 0.9 // beats, graphs and periodic snapshots
)

// ceiling returns how many bytes the log may hold after an entry of this kind was stored. snapshot is the size of the
// last snapshot: two of them fit above the ceiling of frames and reports.
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
	case checkpoint.KindBeat, checkpoint.KindGraph, checkpoint.KindSnapshot:
		return reports
	}
	return math.MaxUint64 // only the server's own limit applies
}

// mustFit reports whether an entry of this kind is stored however full the log is. Snapshots are checked before their
// first part is appended.
func mustFit(kind checkpoint.Kind) bool {
	return kind != checkpoint.KindFrame && kind != checkpoint.KindBeat && kind != checkpoint.KindGraph
}

// MinMaxBytes returns the lowest limit of a log whose snapshots have this size: its top tenth holds two of them.
func MinMaxBytes(snapshot int) int64 {
	return int64(math.Ceil(2 * float64(snapshot) / (1 - reportsUpTo)))
}

// SnapshotBytes returns the size of the newest snapshot of the log's state; 0 when there is none.
func (l *Log) SnapshotBytes(ctx context.Context) (int, error) {
	m, err := l.newest(ctx, l.subject.snapshot)
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

// checkRoom returns ErrFull when the rest of the log is reserved for other kinds of entries. size is that of the
// encoded entry, 0 for a frame.
func (w *Writer) checkRoom(kind checkpoint.Kind, size int) error {
	why := w.lacksRoom(kind, size)
	if why == "" {
		return nil
	}
	w.l.metrics.m.refused.WithLabelValues(w.l.table, "full").Inc()
	return fmt.Errorf("append %s to log of %s: %w: %s", kind, w.l.table, ErrFull, why)
}

// lacksRoom says where there is no room for an entry; "" when it fits.
func (w *Writer) lacksRoom(kind checkpoint.Kind, size int) string {
	info := &w.folded.info
	frame, most := kind == checkpoint.KindFrame, info.ceiling(kind, w.folded.snapshot)
	switch {
	case frame && info.Bytes < most:
		return w.l.q.lacksDisk()
	case !frame && info.Bytes+uint64(size) <= most, kind == checkpoint.KindBeat && w.claimNearlyExpired():
		return ""
	}
	return info.usage()
}

// usage says how full the log is, for messages.
func (i Info) usage() string { return fmt.Sprintf("%.0f %% of its limit in use", 100*i.fraction()) }

// neededLimit returns the server's limit with which marks and one snapshot still fit on top of what is stored.
func (l *Log) neededLimit(bytes uint64, snapshot int) int64 {
	most := l.q.opts.MaxBytes
	return max(most, int64(bytes)+most/20+2*int64(snapshot)+minTrimVolume)
}

// raiseLimit raises the server's limit to the configured one, and above it where the log is so full that not even a
// claim or marks would fit, because it was filled under another limit. Reading stays paused by the configured limit;
// lowerLimit restores that once the log is trimmed. Errors are logged: the next append fails with them.
func (l *Log) raiseLimit(ctx context.Context, bytes uint64, snapshot int) {
	ctx, cancel := l.q.conn.Ask(ctx)
	defer cancel()
	info, err := l.stream.Info(ctx)
	if err != nil {
		l.log.Warn("limits of the log not compared", zap.Error(err))
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
	l, most := w.l, w.l.q.opts.MaxBytes
	if w.folded.info.serverLimit > uint64(most) && l.neededLimit(w.folded.info.Bytes, w.folded.snapshot) == most {
		l.configure(ctx, w.folded.snapshot)
	}
}

// claimNearlyExpired reports whether other processes may soon claim the log: then even a full log takes a beat. An
// embedded log has no other claimers.
func (w *Writer) claimNearlyExpired() bool {
	return w.l.q.embedded == nil && time.Since(w.lastSent) > w.ttl/2
}

// configure sets the stream's limits to those of the options, as far as they leave room on top of what it holds. Only
// the owner calls it. When it fails the old limits stay. snapshot is the size of the last snapshot.
func (l *Log) configure(ctx context.Context, snapshot int) {
	ctx, cancel := l.q.conn.Ask(ctx)
	defer cancel()
	info, err := l.stream.Info(ctx)
	if err != nil {
		l.log.Warn("limits of the log not compared", zap.Error(err))
		return
	}
	now := info.Config
	now.MaxBytes, now.MaxMsgSize = l.neededLimit(info.State.Bytes, snapshot), int32(l.q.conn.MaxMessage())
	now.Replicas = l.q.opts.Replicas
	if l.q.replicasUnset {
		now.Replicas = info.Config.Replicas
	}
	was := info.Config
	if now.MaxBytes == was.MaxBytes && now.MaxMsgSize == was.MaxMsgSize && now.Replicas == was.Replicas {
		return
	}
	if _, err := l.q.conn.JS.UpdateStream(ctx, now); err != nil {
		l.log.Error("limits of the log not changed, the old ones stay", zap.Error(err))
		return
	}
	l.log.Info("limits of the log changed", zap.Int64("max_bytes", now.MaxBytes), zap.Int("replicas", now.Replicas))
}
