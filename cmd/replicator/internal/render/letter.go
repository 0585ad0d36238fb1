package render

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// Letter is a dead letter as it is printed: without the record, unless --show-data asks for it.
type Letter struct {
	Schema    int             `json:"schema"`
	ID        string          `json:"id"`
	Table     string          `json:"table"`
	Sink      string          `json:"sink"`
	Op        string          `json:"op"`
	KeyHash   string          `json:"key_hash"`
	Version   change.Version  `json:"version"`
	Code      string          `json:"code"`
	Reason    string          `json:"reason"`
	Attempts  int             `json:"attempts"`
	FirstSeen time.Time       `json:"first_seen"`
	LastTried time.Time       `json:"last_tried"`
	Shard     string          `json:"shard"`
	Record    json.RawMessage `json:"record,omitempty"`
}

// LetterOf returns a dead letter as it is printed.
func LetterOf(l *deadletter.Letter, showData bool) Letter {
	line := Letter{
		Schema: 1, ID: l.ID, Table: l.Table, Sink: l.Sink, Op: l.Op.String(), KeyHash: change.HashText(l.KeyHash),
		Version: l.Version, Code: l.Code, Reason: l.Reason, Attempts: l.Attempts,
		FirstSeen: l.FirstSeen, LastTried: l.LastTried, Shard: l.Feed.Shard,
	}
	if showData {
		line.Record = bytes.Clone(l.Raw)
	}
	return line
}
