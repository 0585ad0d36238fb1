package queue

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// publish sends one encoded entry, to be stored right after the message at sequence last and
// nowhere else. It returns the entry's sequence.
//
// Rule 2: the server compares the sequence, and, where one copy is kept, also the id of the newest
// message: a store that was put back to an older copy and filled up again by another owner has the
// same number but another id. With replicas no id is sent, because followers may not have loaded
// the ids that they compare; there the quorum prevents that a store goes back.
func (l *Log) publish(
	ctx context.Context, kind checkpoint.Kind, msg []byte, last uint64, lastID, id string,
) (uint64, error) {
	call, cancel := l.q.conn.WithAckTimeout(ctx)
	defer cancel()
	m := &nats.Msg{Subject: l.subjectOf(kind), Data: msg, Header: nats.Header{
		nats.ExpectedLastSeqHdr: {strconv.FormatUint(last, 10)},
	}}
	if l.q.opts.Replicas == 1 {
		m.Header[nats.MsgIdHdr] = []string{id}
		if lastID != "" {
			m.Header[nats.ExpectedLastMsgIdHdr] = []string{lastID}
		}
	}
	sent := time.Now()
	ack, err := l.q.conn.JS.PublishMsg(call, m, jetstream.WithRetryAttempts(0))
	l.q.conn.Report(ctx, err)
	if err != nil {
		return 0, err
	}
	if ack.Sequence != last+1 || ack.Stream != l.name || ack.Duplicate {
		return 0, fmt.Errorf("stored at %d of %s instead of %d (duplicate: %v)",
			ack.Sequence, ack.Stream, last+1, ack.Duplicate)
	}
	l.metrics.latency.Observe(time.Since(sent).Seconds())
	l.metrics.bytes.Add(float64(len(msg)))
	l.metrics.m.appends.WithLabelValues(l.table, kind.String()).Inc()
	return ack.Sequence, nil
}

// subjectOf returns the subject of entries of a kind.
func (l *Log) subjectOf(kind checkpoint.Kind) string {
	switch kind {
	case checkpoint.KindClaim, checkpoint.KindRelease:
		return l.subject.Claim
	case checkpoint.KindSnapshot:
		return l.subject.Snapshot
	}
	return l.subject.Entry
}

// messageID returns an id for one attempt. No attempt uses the id of another: an earlier attempt at
// the same sequence may have other content and arrive late, and the server would treat the next
// attempt as its duplicate.
func (q *Queue) messageID(nonce checkpoint.Nonce) string {
	return fmt.Sprintf("%x-%s", nonce[:], strconv.FormatUint(q.attempts.Add(1), 36))
}

// newNonce returns the random number that marks the entries of one claim.
func newNonce() (n checkpoint.Nonce, err error) {
	if _, err := rand.Read(n[:]); err != nil {
		return n, fmt.Errorf("make nonce: %w", err)
	}
	return n, nil
}
