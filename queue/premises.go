package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tailrace-cdc/replicator/protocol"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// streamKind is what one of a table's streams must be beyond what all of them must be.
type streamKind struct {
	keyed bool   // one message per subject: dead letters and requests
	again string // makes the stream again with its settings, where none of it can be edited
}

// JudgePremises returns the settings of a stream that are not as this package relies on. The limits
// of bytes and of a message, and the number of copies, are the owner's (Log.configure).
func JudgePremises(cfg *jetstream.StreamConfig, kind streamKind) (found protocol.Premises) {
	check := func(ok bool, code string, is any, wanted, edit string, unsafe bool) {
		if ok {
			return
		}
		mend := kind.again
		if edit != "" {
			mend = "nats stream edit " + cfg.Name + " " + edit
		}
		found = append(found, protocol.Premise{
			Code: code, What: "stream " + cfg.Name, Found: fmt.Sprint(is), Wanted: wanted, Mend: mend, Unsafe: unsafe,
		})
	}
	perSubject := int64(-1)
	if kind.keyed {
		perSubject = 1
	}
	// Under each of these a message that was acknowledged may be lost or replaced.
	check(cfg.Storage == jetstream.FileStorage, "stream_storage", cfg.Storage, "file", "", true)
	check(cfg.PersistMode == jetstream.DefaultPersistMode, "stream_persist_mode", cfg.PersistMode, "default", "", true)
	check(cfg.Mirror == nil, "stream_mirror", "a mirror", "none", "", true)
	check(cfg.Retention == jetstream.LimitsPolicy, "stream_retention", cfg.Retention, "limits", "", true)
	check(cfg.Discard == jetstream.DiscardNew, "stream_discard", cfg.Discard, "new", "--discard=new", true)
	check(cfg.MaxAge == 0, "stream_max_age", cfg.MaxAge, "0s", "--max-age=0s", true)
	check(cfg.MaxMsgsPerSubject <= 0 && !kind.keyed || cfg.MaxMsgsPerSubject == perSubject, "stream_max_msgs_per_subject",
		cfg.MaxMsgsPerSubject, strconv.FormatInt(perSubject, 10),
		"--max-msgs-per-subject="+strconv.FormatInt(perSubject, 10), true)
	check(!cfg.NoAck, "stream_no_ack", cfg.NoAck, "false", "--ack", true)
	// These stop the stream, or let another client change it.
	check(cfg.MaxMsgs <= 0, "stream_max_msgs", cfg.MaxMsgs, "-1", "--max-msgs=-1", false)
	check(!cfg.Sealed, "stream_sealed", cfg.Sealed, "false", "", false)
	check(len(cfg.Sources) == 0, "stream_sources", len(cfg.Sources), "none", "", false)
	check(kind.keyed || cfg.DenyDelete, "stream_deny_delete", cfg.DenyDelete, "true", "--deny-delete", false)
	return found
}

// Premises returns the settings of the table's streams, as the server has them, that are not as
// this package relies on.
//
// Rule 15: they are read at the start and then each minute.
func (l *Log) Premises(ctx context.Context) (found protocol.Premises, err error) {
	for _, s := range []struct {
		name string
		kind streamKind
	}{
		{l.name, streamKind{again: "nats stream rm " + l.name + " && replicator recover --table " + l.table}},
		{lettersStream(l.name), streamKind{keyed: true}},
		{requestsStream(l.name), streamKind{keyed: true, again: "nats stream rm " + requestsStream(l.name)}},
		{archiveStream(l.name), streamKind{}},
	} {
		if s.kind.again == "" {
			s.kind.again = "nats stream backup " + s.name + " DIR; nats stream rm " + s.name
		}
		asking, cancel := l.q.conn.WithAckTimeout(ctx)
		st, err := l.q.conn.JS.Stream(asking, s.name)
		cancel()
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // it is made with its settings; whether the log is gone is asked elsewhere
		}
		if err != nil {
			return nil, fmt.Errorf("ask for the settings of stream %s: %w", s.name, conn.Explain(err))
		}
		cfg := st.CachedInfo().Config
		found = append(found, JudgePremises(&cfg, s.kind)...)
	}
	return found, nil
}
