package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// DamageError reports that entries inside a log cannot be read, because their store is damaged. The
// entries after them cannot be folded, and nothing may be appended, until an operator resumes the
// table.
//
// Resuming appends a control entry, which continues the chain from the last entry before the
// damage: the entries in between have no effect any more. Positions, clocks and marks are then
// those before the damage. What is lost is read again from the source, as far as the source still
// has it; the rest becomes a gap.
type DamageError struct {
	From, To uint64    // the first range of entries that cannot be read
	Last     uint64    // the newest message of the log
	Since    time.Time // when the entry before them was stored; zero when there is none
	Until    time.Time // when the newest message was stored
	Hint     string    // what an operator can do

	copies    int  // replicas of the log
	elsewhere bool // the files are those of an external server
}

func (e *DamageError) Error() string {
	what := fmt.Sprintf("entries %d to %d cannot be read: the store is damaged", e.From, e.To)
	if e.Last > e.To {
		what += fmt.Sprintf("; the entries behind them up to %d are cut off", e.Last)
	}
	if !e.Since.IsZero() {
		what += fmt.Sprintf("; they were stored between %s and %s",
			e.Since.UTC().Format(time.RFC3339), e.Until.UTC().Format(time.RFC3339))
	}
	if e.elsewhere {
		what += "; or its volume gives input/output errors, which are no damage: the log of the NATS server says so"
	}
	return what + "; " + e.Hint
}

// Is lets errors.Is(err, ErrDamaged) find it.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

const (
	hintResume = "`replicator resume` goes on from what was stored before them: " +
		"DynamoDB is read again from there, and changes that it no longer has become a gap"
	hintSink       = "a sink that has not applied them can only go on behind them"
	hintNoSnapshot = "no snapshot is left to begin with: see \"Damaged log\" in docs/operations.md"
)

// tailDeleted reports whether the server lists the message at a sequence as deleted, as it does for
// a tail that was lost in a crash: then the state went back with it. Otherwise the message is
// stored and cannot be read.
func (l *Log) tailDeleted(ctx context.Context, from uint64) (bool, error) {
	info, err := l.q.conn.StreamInfo(ctx, l.stream, jetstream.WithDeletedDetails(true))
	if err != nil {
		return false, err
	}
	for _, seq := range info.State.Deleted {
		if seq == from {
			return true, nil
		}
	}
	return false, nil
}

// maxCopySearch is how many consumers in a row may fail to deliver an entry before it counts as
// unreadable. The server picks the replica of each at random: if only one of three copies is good,
// 18 consumers all miss it with a probability of less than one in a thousand.
const maxCopySearch = 18

// copySearch counts the consumers that did not deliver an entry. The leader of a stream may hold
// the only copy in which the entry is damaged, while a consumer may be served by any replica, and
// the hash chain proves what it delivers. So the entry counts as unreadable only after several
// consumers have failed to deliver it.
type copySearch struct {
	after uint64 // the entry that was read last
	tries int    // consumers that did not deliver the next one
}

// tryAnother counts a consumer that did not deliver the entry after a sequence. It reports whether
// to try another consumer, because its replica may have the entry.
func (s *copySearch) tryAnother(after uint64, copies int) bool {
	if s.after != after {
		*s = copySearch{after: after}
	}
	s.tries++
	return copies > 1 && s.tries <= maxCopySearch
}

// logBadCopy logs, once per entry, that an operator has to repair the leader's copy.
func (l *Log) logBadCopy(from uint64) {
	if l.numberChanged("bad copy", from) {
		l.log.Error(`the server that leads the log's stream cannot read an entry, looking for another copy of it: `+
			`see "Damaged log" in docs/operations.md`, zap.Uint64("seq", from))
	}
}

// noteDamage records that the entries before m cannot be read.
func (f *folded) noteDamage(m conn.Message) {
	if f.damage == nil {
		f.damage = &DamageError{From: f.state.Seq + 1, To: m.Seq - 1, Since: f.storedAt, Hint: hintResume}
	}
}

// explainMissing returns why the messages of the sequences [from, to) were not delivered: nil when
// the leader has the first of them, errLogChanged when they were trimmed meanwhile, otherwise a
// *DamageError.
func (l *Log) explainMissing(ctx context.Context, from, to uint64) error {
	_, err := l.message(ctx, from)
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return err
	}
	info, err := l.Info(ctx)
	if err != nil {
		return err
	}
	if info.First > from {
		return fmt.Errorf("%w: trimmed up to %d: %w", ErrGap, info.First-1, errLogChanged)
	}
	return &DamageError{
		From: from, To: to - 1, Last: info.Last, Since: info.Oldest, Until: info.Now, Hint: hintSink, copies: info.copies,
	}
}

// isEntry reports whether a message is an entry of some log.
func isEntry(msg []byte) bool {
	_, err := checkpoint.Decode(msg)
	return err == nil
}

// continues reports whether a message holds an entry that names the newest one of a chain as its
// predecessor.
func continues(c *checkpoint.Chain, msg []byte) bool {
	e, err := checkpoint.Decode(msg)
	return err == nil && c.Continues(e)
}

// logTruncation logs when the server cut off the end of the log as it opened its store, because it
// could not read on. The state went back with the entries, and their changes are read again from
// the source: without this line the operator would not learn why.
func (l *Log) logTruncation(ctx context.Context, s *checkpoint.State) {
	ctx, cancel := l.q.conn.WithAckTimeout(ctx)
	defer cancel()
	answer, err := l.q.conn.Request(ctx, "STREAM.INFO."+l.name, []byte(`{"deleted_details":true}`))
	var info struct {
		State struct {
			Lost struct {
				Bytes uint64 `json:"bytes"`
			} `json:"lost"`
		} `json:"state"`
	}
	if err == nil {
		err = json.Unmarshal(answer.Data, &info)
	}
	if err != nil {
		l.log.Warn("could not ask the server whether it cut off the end of the log", zap.Error(err))
		return
	}
	if n := info.State.Lost.Bytes; n > 0 {
		l.log.Error("the server cut off the end of the log, which it could not read; "+
			"DynamoDB is read again from there, and what it no longer has becomes a gap",
			zap.Uint64("bytes", n), zap.Uint64("last", s.Seq), zap.Time("read_up_to", s.Date.Time()))
	}
}
