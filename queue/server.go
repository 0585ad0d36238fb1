package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tailrace-cdc/replicator/queue/request"
)

// ServerInfo describes an external server and the account that this client uses, as far as clients
// can query them.
type ServerInfo struct {
	Cluster    string // name of its cluster; "" for a single server
	Servers    int    // how many servers clients may connect to, this one included
	MaxPayload int64  // bytes of one message
	// Store is the account's limit of bytes on disk, negative without one; Reserved is the part of
	// it that its streams have reserved. Each copy counts, unless the account has a limit for
	// streams with this number of copies. The server's own limit (max_file_store) is not visible to
	// clients.
	Store, Reserved int64
	Copies          int64 // how many copies of a log count towards Store
}

// ServerInfo returns what the external server reports about itself; ok is false for the embedded
// one.
func (q *Queue) ServerInfo(ctx context.Context) (s ServerInfo, ok bool, err error) {
	if q.opts.URL == "" {
		return s, false, nil
	}
	ctx, cancel := q.conn.WithAckTimeout(ctx)
	defer cancel()
	account, err := q.conn.JS.AccountInfo(ctx)
	if err != nil {
		return s, true, fmt.Errorf("ask JetStream: %w", err)
	}
	s = ServerInfo{
		Cluster: q.conn.NC.ConnectedClusterName(), Servers: len(q.conn.NC.Servers()), MaxPayload: q.conn.NC.MaxPayload(),
		Store: account.Limits.MaxStore, Reserved: int64(account.ReservedStore),
		Copies: int64(q.opts.Replicas),
	}
	if tier, tiered := account.Tiers[fmt.Sprintf("R%d", q.opts.Replicas)]; tiered {
		s.Store, s.Reserved, s.Copies = tier.Limits.MaxStore, int64(tier.ReservedStore), 1
	}
	return s, true, nil
}

// defaultReplicas returns the number of copies of a new log when Options.Replicas is 0: three in a
// cluster, so that one server may be lost; one on a single server, which can hold no more.
func (q *Queue) defaultReplicas() int {
	if q.conn.NC.ConnectedClusterName() != "" {
		return 3
	}
	return 1
}

// Replicas returns the number of copies of a new log.
func (q *Queue) Replicas() int { return q.opts.Replicas }

// Needs are the bytes of one copy that the streams of some tables still need.
type Needs struct {
	Reserve int64 // that a server must still reserve: the limits of streams, less what existing ones have reserved
	Grow    int64 // that the streams may still take on disk until each has reached its limit
}

// Needs adds up what the streams of these tables still need: log, dead letters, requests, and
// events for the archive.
func (q *Queue) Needs(ctx context.Context, tables []string) (n Needs, err error) {
	for _, table := range tables {
		for stream, limit := range q.opts.limits(table) {
			st, err := q.conn.JS.Stream(ctx, stream)
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				err = q.conn.ConfirmMissing(ctx, stream) // Rule 13
			}
			switch {
			case errors.Is(err, jetstream.ErrStreamNotFound):
				n.Reserve, n.Grow = n.Reserve+limit, n.Grow+limit
			case err != nil:
				return Needs{}, fmt.Errorf("ask about stream %s: %w", stream, err)
			default:
				info := st.CachedInfo()
				n.Reserve += max(0, limit-info.Config.MaxBytes)
				n.Grow += max(0, limit-int64(info.State.Bytes))
			}
		}
	}
	return n, nil
}

// NeedsOf is Needs for a store that does not exist yet.
func NeedsOf(o Options, tables []string) (n Needs) {
	for _, table := range tables {
		for _, limit := range o.withDefaults().limits(table) {
			n.Reserve, n.Grow = n.Reserve+limit, n.Grow+limit
		}
	}
	return n
}

// limits returns how many bytes each stream of a table may hold, by the stream's name.
func (o Options) limits(table string) map[string]int64 {
	name := streamName(o.Pipeline, table)
	return map[string]int64{
		name: o.MaxBytes, lettersStream(name): o.LettersMaxBytes, requestsStream(name): request.MaxBytes,
		archiveStream(name): o.ArchiveMaxBytes, // 0: there is none
	}
}

// Conn returns the queue's own connection, for publishing outside the logs: archival events go to
// the same servers. The caller must not close it.
func (q *Queue) Conn() *nats.Conn { return q.conn.NC }
