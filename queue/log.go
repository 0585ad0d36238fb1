package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/presence"
)

// Log is the durable queue of one table. It is safe for concurrent use.
type Log struct {
	q            *Queue
	table        string
	name         string // of the stream
	token        string
	subject      subjects
	created      time.Time
	stream       jetstream.Stream
	metrics      *tableMetrics
	tail         *tail // nil with an external server
	log          *zap.Logger
	raiseRefused atomic.Bool // whether it was logged that the server refuses a larger limit
}

// Info is the server's answer about a log: its range of sequences, its size and limits.
type Info struct {
	Created  time.Time // identifies the stream: one that was deleted and made again has another time
	First    uint64    // sequence of the oldest message; Last + 1 when there is none
	Last     uint64    // sequence of the newest message ever stored
	Bytes    uint64
	MaxBytes uint64    // the configured limit, or the server's where that is less; 0 = none
	Deleted  int       // messages missing between First and Last; more than 0 is damage
	Oldest   time.Time // when First was stored; zero when there is none
	Now      time.Time // the server's clock at the answer

	origin      uint64 // sequence the stream began with
	serverLimit uint64 // 0 = none
	copies      int    // of the log
}

// Trimmed reports whether entries were deleted from the beginning of the log.
func (i Info) Trimmed() bool { return i.First != i.origin }

// empty reports whether no message is left.
func (i Info) empty() bool { return i.First > i.Last }

// Log opens the log of a table; ErrNoLog when there is none, *conn.FormatError when a newer build
// made it.
func (q *Queue) Log(ctx context.Context, table string) (*Log, error) {
	name := streamName(q.opts.Pipeline, table)
	st, err := q.conn.JS.Stream(ctx, name)
	q.conn.Report(ctx, err)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = q.conn.ConfirmMissing(ctx, name)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err := q.checkUnopened(ctx, name, hintRecover); err != nil {
			return nil, fmt.Errorf("open log of %s: %w", table, err)
		}
		return nil, fmt.Errorf("open log of %s: %w", table, ErrNoLog)
	}
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", table, err)
	}
	return q.newLog(table, st)
}

// CreateLog makes the log of a table, or opens the existing one with the same token. It may be
// repeated.
func (q *Queue) CreateLog(ctx context.Context, table, token string) (*Log, error) {
	if token == "" || strings.ContainsAny(token, ".*> \t\r\n") {
		return nil, fmt.Errorf("create log of %s: the token must be one word without dots", table)
	}
	// Sequences start at the time in microseconds, so that a stream that is deleted and made again
	// never reuses numbers.
	st, err := q.conn.CreateStream(ctx, q.streamConfig(table, token, uint64(time.Now().UnixMicro())))
	if err != nil {
		return nil, fmt.Errorf("create log of %s: %w", table, err)
	}
	l, err := q.newLog(table, st)
	if err == nil && l.token != token {
		return nil, fmt.Errorf("create log of %s: it exists with another token: "+
			"another process was faster, or another pipeline of this name made it", table)
	}
	return l, err
}

// DeleteLog deletes a log with all its entries, unless another one has taken its place since it was
// opened. Its dead letters stay, and its next log keeps its token, by which they are found.
func (q *Queue) DeleteLog(ctx context.Context, l *Log) error {
	if _, err := l.Info(ctx); errors.Is(err, ErrEmptied) {
		return nil
	} else if err != nil {
		return err
	}
	err := q.conn.JS.DeleteStream(ctx, l.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = q.conn.ConfirmMissing(ctx, l.name) // Rule 13
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("delete log of %s: %w", l.table, err)
	}
	return nil
}

// KeptToken returns the token of an earlier log of the table if its dead letters or archive still
// exist; else "".
func (q *Queue) KeptToken(ctx context.Context, table string) (string, error) {
	log := streamName(q.opts.Pipeline, table)
	for _, kept := range []struct{ name, hint string }{
		{lettersStream(log), hintLetters}, {archiveStream(log), hintArchive},
	} {
		name, hint := kept.name, kept.hint
		if err := q.checkUnopened(ctx, name, hint); err != nil {
			return "", fmt.Errorf("look for what is kept of %s: %w", table, err)
		}
		st, err := q.conn.JS.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = q.conn.ConfirmMissing(ctx, name) // Rule 13
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look for what is kept of %s: %w", table, err)
		}
		token, _, _ := strings.Cut(strings.TrimPrefix(st.CachedInfo().Config.Subjects[0], subjectPrefix), ".")
		return token, nil
	}
	return "", nil
}

// listWithin is how long a listing of the logs is requested again: a cluster elects another leader
// of a stream within ten seconds.
const listWithin = 15 * time.Second

// Tables lists the tables of this pipeline that have a log, in order. A transient error means that
// the listing stayed incomplete: with ErrListing Tables returns those that were listed at least.
func (q *Queue) Tables(ctx context.Context) ([]string, error) {
	asking, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	listed, lacks := map[string]bool{}, error(nil)
	err := conn.Retry(asking, func() error {
		all, err := q.conn.ListStreams(asking, streamsOf(q.opts.Pipeline))
		if err == nil {
			clear(listed) // what an incomplete listing had may be gone
		}
		for _, info := range all {
			m := info.Config.Metadata
			if m[conn.MetaPipeline] == q.opts.Pipeline &&
				info.Config.Name == streamName(q.opts.Pipeline, m[conn.MetaTable]) {
				listed[m[conn.MetaTable]] = true
			}
		}
		if errors.Is(err, ErrListing) {
			lacks = err
		}
		return err
	})
	tables := slices.Sorted(maps.Keys(listed))
	if err != nil {
		return tables, fmt.Errorf("list logs: %w", cmp.Or(lacks, err)) // the last request was cut off
	}
	return tables, nil
}

// streamConfig returns the configuration of a new log with first as its first sequence.
func (q *Queue) streamConfig(table, token string, first uint64) jetstream.StreamConfig {
	s := subjectsOf(token, table)
	return jetstream.StreamConfig{
		Name: streamName(q.opts.Pipeline, table), Subjects: []string{s.Entry, s.Snapshot, s.Claim},
		Description: "Tailrace: changes of " + table,
		Retention:   jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: q.opts.Replicas,
		Discard: jetstream.DiscardNew, MaxBytes: q.opts.MaxBytes, MaxMsgSize: int32(q.conn.MaxMessage()),
		FirstSeq: first, DenyDelete: true, AllowDirect: false, Duplicates: time.Second,
		Metadata: map[string]string{
			conn.MetaFormat: strconv.Itoa(conn.FormatNumber), conn.MetaPipeline: q.opts.Pipeline,
			conn.MetaTable: table, conn.MetaToken: token,
		},
	}
}

// numberChanged reports whether n differs from the number of the last call for this log and topic,
// so that a caller can log the same finding only once.
func (l *Log) numberChanged(topic string, n uint64) bool {
	before, _ := l.q.lastLogged.Swap(l.name+" "+topic, n)
	return before != n
}

// newLog returns the log in a stream; an error when the stream is not a log, or has a newer format
// (Rule 11).
func (q *Queue) newLog(table string, st jetstream.Stream) (*Log, error) {
	info := st.CachedInfo()
	m := info.Config.Metadata
	if need, err := strconv.Atoi(m[conn.MetaFormat]); err != nil {
		return nil, fmt.Errorf("open log of %s: stream %s was not made by Tailrace", table, info.Config.Name)
	} else if need > conn.FormatNumber {
		return nil, fmt.Errorf("open log of %s: %w", table, &conn.FormatError{What: "stream " + info.Config.Name, Need: need})
	}
	return &Log{
		q: q, table: table, name: info.Config.Name, token: m[conn.MetaToken],
		subject: subjectsOf(m[conn.MetaToken], table),
		created: info.Created, stream: st, metrics: q.metrics.forTable(table), log: q.log.With(zap.String("table", table)),
		tail: q.tails.of(info.Config.Name),
	}, nil
}

// Group returns the group that receives the messages of the pipeline's other processes; nil with an
// embedded server, which has no others.
func (q *Queue) Group(o presence.Options) *presence.Group {
	if q == nil || q.Embedded() {
		return nil
	}
	o.Subject, o.Logger = presenceSubject(q.opts.Pipeline), q.log
	return presence.New(o, q.conn)
}

// MaxPayload returns the size of the largest message that the server takes, for frame.Pack.
func (q *Queue) MaxPayload() int { return q.conn.MaxMessage() }

// Table returns the table's name.
func (l *Log) Table() string { return l.table }

// Token returns the pipeline's random token.
func (l *Log) Token() string { return l.token }

// Created returns when the stream was made, which identifies it.
func (l *Log) Created() time.Time { return l.created }

// Info reads from the leader of the stream how much the log holds. It returns ErrEmptied when the
// stream is gone or is not the one that was opened.
func (l *Log) Info(ctx context.Context) (Info, error) {
	info, err := l.q.conn.StreamInfo(ctx, l.stream)
	l.q.conn.Report(ctx, err)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return Info{}, fmt.Errorf("ask about log of %s: %w: stream %s does not exist", l.table, ErrEmptied, l.name)
	}
	if err != nil {
		return Info{}, fmt.Errorf("ask about log of %s: %w", l.table, err)
	}
	if !info.Created.Equal(l.created) {
		return Info{}, fmt.Errorf("ask about log of %s: %w: the stream was made at %v, the one that was opened at %v",
			l.table, ErrEmptied, info.Created, l.created)
	}
	s := info.State
	i := Info{
		Created: info.Created, First: s.FirstSeq, Last: s.LastSeq, Bytes: s.Bytes,
		Deleted: s.NumDeleted, Now: info.TimeStamp, origin: info.Config.FirstSeq,
		serverLimit: uint64(max(info.Config.MaxBytes, 0)),
		copies:      info.Config.Replicas,
	}
	if i.serverLimit > 0 {
		i.MaxBytes = min(i.serverLimit, uint64(l.q.opts.MaxBytes))
	}
	if s.Msgs > 0 {
		i.Oldest = s.FirstTime
	} else {
		i.First = i.Last + 1
	}
	if i.Now.IsZero() {
		i.Now = time.Now()
	}
	if l.q.disk != nil {
		l.q.disk.SetLogBytes(l.table, i.Bytes)
	}
	l.metrics.stored.Set(float64(i.Bytes))
	if i.MaxBytes > 0 {
		l.metrics.used.Set(float64(i.Bytes) / float64(i.MaxBytes))
	}
	return i, nil
}

// message returns the message at a sequence, as the leader has it.
func (l *Log) message(ctx context.Context, seq uint64) (*jetstream.RawStreamMsg, error) {
	return l.q.conn.GetMessage(ctx, l.name, conn.MessageRequest{Seq: seq})
}

// SeenAt returns what the leader has at a sequence, for protocol.JudgeLog.
func (l *Log) SeenAt(ctx context.Context, seq uint64) (seen protocol.LogSeen, err error) {
	m, err := l.message(ctx, seq)
	switch {
	case err == nil:
		seen.There, seen.Hash = true, checkpoint.HashOf(m.Data)
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return seen, fmt.Errorf("read entry %d of the log of %s: %w", seq, l.table, err)
	}
	info, err := l.Info(ctx)
	if err != nil {
		return seen, err
	}
	seen.Created, seen.First, seen.Last = info.Created, info.First, info.Last
	if !seen.There && seq >= info.First && seq <= info.Last {
		err = l.q.confirmUnreadable(l.name, nil)
	}
	return seen, err
}

// newest returns the newest message on a subject, as the leader has it.
func (l *Log) newest(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	return l.q.conn.GetMessage(ctx, l.name, conn.MessageRequest{LastFor: subject})
}

// consume starts reading at a sequence, or at the first message after it.
func (l *Log) consume(ctx context.Context, from uint64) (*conn.Consumer, error) {
	c, err := l.q.conn.Consume(ctx, l.name, from, l.metrics.read)
	if err != nil {
		return nil, fmt.Errorf("start reading log of %s: %w", l.table, err)
	}
	return c, nil
}

// Check is the start-up check of a log: the stream was made at created (unless that is zero), it
// was not emptied, and no message is missing inside it. It does not read the entries; Fold does.
func (l *Log) Check(ctx context.Context, created time.Time) (Info, error) {
	info, err := l.Info(ctx)
	if err != nil {
		return info, err
	}
	switch {
	case !created.IsZero() && !info.Created.Equal(created):
		err = fmt.Errorf("check log of %s: %w: the stream was made at %v, expected %v",
			l.table, ErrEmptied, info.Created, created)
	case info.empty() && info.Last >= info.origin:
		err = fmt.Errorf("check log of %s: %w: all entries up to %d are gone", l.table, ErrEmptied, info.Last)
	case info.Deleted > 0:
		err = l.checkDeleted(ctx, info)
	}
	return info, err
}

// checkDeleted returns nil when the deleted messages are the newest ones: the state went back with
// them, and the source is read again from there. It returns ErrGap when messages are missing
// between others.
func (l *Log) checkDeleted(ctx context.Context, info Info) error {
	details, err := l.q.conn.StreamInfo(ctx, l.stream, jetstream.WithDeletedDetails(true))
	if err != nil {
		return fmt.Errorf("check log of %s: %w", l.table, err)
	}
	lost := details.State.Deleted
	slices.Sort(lost)
	if n := uint64(len(lost)); n > 0 && lost[0] == info.Last-n+1 {
		l.log.Warn("log lost its newest entries, going on from what is stored",
			zap.Uint64("entries", n), zap.Uint64("from", lost[0]))
		return nil
	}
	return fmt.Errorf("check log of %s: %w: %d between %d and %d",
		l.table, ErrGap, info.Deleted, info.First, info.Last)
}

// CheckMark is the start-up check of a mark: the entry after it must still be there, or be the next
// one.
func (i Info) CheckMark(seq uint64) error {
	if seq+1 < i.First || seq > i.Last {
		return fmt.Errorf("check mark %d: %w: the log holds %d to %d", seq, ErrGap, i.First, i.Last)
	}
	return nil
}

// fraction returns how much of the limit is in use.
func (i Info) fraction() float64 {
	if i.MaxBytes == 0 {
		return 0
	}
	return float64(i.Bytes) / float64(i.MaxBytes)
}
