package deadletter

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Summary is a dead letter as commands print it: without the record, unless --show-data is set.
type Summary struct {
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

// Summary returns the letter as commands print it.
func (l *Letter) Summary(showData bool) Summary {
	s := Summary{
		Schema: 1, ID: l.ID, Table: l.Table, Sink: l.Sink, Op: l.Op.String(), KeyHash: change.HashText(l.KeyHash),
		Version: l.Version, Code: l.Code, Reason: l.Reason, Attempts: l.Attempts,
		FirstSeen: l.FirstSeen, LastTried: l.LastTried, Shard: l.Feed.Shard,
	}
	if showData {
		s.Record = bytes.Clone(l.Raw)
	}
	return s
}
