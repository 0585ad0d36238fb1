package deadletter

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Summary is a dead letter as commands print it: without key and record, unless --show-data is set.
type Summary struct {
	Schema    int             `json:"schema"`
	ID        string          `json:"id"`
	Table     string          `json:"table"`
	Sink      string          `json:"sink"`
	Op        string          `json:"op"`
	Copy      string          `json:"copy,omitempty"` // id of the copy that read the item
	KeyHash   string          `json:"key_hash"`
	Version   change.Version  `json:"version"`
	Code      string          `json:"code"`
	Reason    string          `json:"reason"`
	Attempts  int             `json:"attempts"`
	FirstSeen time.Time       `json:"first_seen"`
	LastTried time.Time       `json:"last_tried"`
	Shard     string          `json:"shard"`
	Keys      json.RawMessage `json:"keys,omitempty"` // of the item, as typed JSON
	Record    json.RawMessage `json:"record,omitempty"`
}

// OpCopied stands in place of the operation where a copy read the item: there is no change.
const OpCopied = "COPY"

// Summary returns the letter as commands print it.
func (l *Letter) Summary(showData bool) Summary {
	s := Summary{
		Schema: 1, ID: l.ID, Table: l.Table, Sink: l.Sink, Op: l.Op.String(), KeyHash: change.HashText(l.KeyHash),
		Version: l.Version, Code: l.Code, Reason: l.Reason, Attempts: l.Attempts,
		FirstSeen: l.FirstSeen, LastTried: l.LastTried, Shard: l.Feed.Shard, Copy: l.Copy,
	}
	if l.Copy != "" {
		s.Op = OpCopied
	}
	if showData {
		s.Keys, s.Record = l.ItemKeys(), bytes.Clone(l.Raw)
	}
	return s
}

// ItemKeys returns the key attributes of the item as typed JSON; nil where the letter cannot be
// read.
func (l *Letter) ItemKeys() json.RawMessage {
	if l.Keys != nil {
		return bytes.Clone(l.Keys)
	}
	c, err := l.Change()
	if err != nil {
		return nil
	}
	return bytes.Clone(c.Keys)
}
