package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ServerInfo is what an external server tells its clients about itself and the account.
type ServerInfo struct {
	Cluster    string // name of its cluster; "" for a single server
	Servers    int    // that clients may connect to, itself included
	MaxPayload int64  // bytes of one message
	// Store is the account's limit of bytes on disk, negative without one; Reserved is what its streams have reserved of
	// that. Each copy counts, unless the account has a limit for streams with this number of copies. Clients do not see
	// the server's own limit (max_file_store).
	Store, Reserved int64
	Copies          int64 // how many copies of a log count towards Store
}

// ServerInfo asks the external server; ok is false for the embedded one.
func (q *Queue) ServerInfo(ctx context.Context) (s ServerInfo, ok bool, err error) {
	if q.opts.URL == "" {
		return s, false, nil
	}
	ctx, cancel := q.conn.Ask(ctx)
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

// replicas returns the number of copies of a new log without Options.Replicas: three in a cluster, so that a server
// may be lost; one on a single server, which can hold no more.
func (q *Queue) replicas() int {
	if q.conn.NC.ConnectedClusterName() != "" {
		return 3
	}
	return 1
}

// Replicas returns the number of copies of a new log.
func (q *Queue) Replicas() int { return q.opts.Replicas }

// UnreservedBytes returns the bytes of one copy that must still be reserved for the logs and dead letters of these
// tables.
func (q *Queue) UnreservedBytes(ctx context.Context, tables []string) (bytes int64, err error) {
	for _, table := range tables {
		name := q.streamName(table)
		for stream, limit := range map[string]int64{name: q.opts.MaxBytes, deadLetterStream(name): q.opts.LettersMaxBytes} {
			st, err := q.conn.JS.Stream(ctx, stream)
			switch {
			case errors.Is(err, jetstream.ErrStreamNotFound):
				bytes += limit
			case err != nil:
				return 0, fmt.Errorf("ask about stream %s: %w", stream, err)
			default:
				bytes += max(0, limit-st.CachedInfo().Config.MaxBytes)
			}
		}
	}
	return bytes, nil
}

// Conn returns the queue's own connection, for publishing beside the logs: archival events go to the same servers. The
// caller must not close it.
func (q *Queue) Conn() *nats.Conn { return q.conn.NC }
