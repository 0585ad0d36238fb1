// Package deadletter keeps the dead letters of a table: changes that a sink will never take, and
// items that a copy of the table could not write, each with its reason, in a stream of their own
// with one subject per letter. The replicator stores them; commands list, retry and drop them.
package deadletter

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/frame"
)

// Letter is a change that a sink will never take, or an item that a copy could not write, kept with
// its reason (Rule 8). The letter of a copy has Copy and Keys, and no record: the item is read
// again when it is retried. The letter of a published event has Event and Keys: the log may not
// have the record any more.
type Letter struct {
	ID        string                `json:"id"`
	Table     string                `json:"table"`
	Sink      string                `json:"sink"`
	Feed      change.Feed           `json:"feed"`
	Seq       change.SequenceNumber `json:"seq"`
	Op        change.Op             `json:"op"`
	TTL       bool                  `json:"ttl,omitempty"`
	Version   change.Version        `json:"version"`
	Created   change.Millis         `json:"created"`
	KeyHash   uint64                `json:"key_hash"`
	Code      string                `json:"code"`
	Reason    string                `json:"reason"`
	Attempts  int                   `json:"attempts"` // beyond the first
	FirstSeen time.Time             `json:"first_seen"`
	LastTried time.Time             `json:"last_tried"`
	// Behind is true when an earlier change of the item was a dead letter at the time this one was
	// refused, so that the sink does not hold this change's old image.
	Behind bool `json:"behind,omitempty"`
	// Resynced is the version at which the rows of the item were made true since; 0: never. What
	// remains of the letter is what outlives the item, and the item's next changes may be applied.
	Resynced change.Version  `json:"resynced,omitempty"`
	Copy     string          `json:"copy,omitempty"` // id of the copy
	Keys     json.RawMessage `json:"keys,omitempty"` // of the item, as typed JSON
	Event    bool            `json:"event,omitempty"`
	Raw      []byte          `json:"-"` // the record as DynamoDB sent it, or the event as it would be published
}

// New makes the letter of a change that a sink refused. Its id depends on feed, sequence number and
// sink only: a replay of the change makes the same letter.
func New(table, sink string, c *change.Change, code, reason string, now time.Time) *Letter {
	return &Letter{
		ID: idOf(c.Feed, c.SequenceNumber, sink), Table: table, Sink: sink, Feed: c.Feed, Seq: c.SequenceNumber,
		Op: c.Op, TTL: c.TTL,
		Version: c.Version, Created: c.Created, KeyHash: c.KeyHash, Code: code, Reason: reason,
		FirstSeen: now.UTC(), LastTried: now.UTC(), Raw: bytes.Clone(c.Raw),
	}
}

// MarshalLogObject adds the fields of a letter to a log line. The reason is left out: it may quote
// the item, which only `replicator dlq show` prints.
func (l *Letter) MarshalLogObject(to zapcore.ObjectEncoder) error {
	to.AddString("letter", l.ID)
	to.AddString("sink", l.Sink)
	to.AddString("code", l.Code)
	to.AddString("key_hash", change.HashText(l.KeyHash))
	to.AddInt64("version", int64(l.Version))
	return nil
}

func idOf(feed change.Feed, seq change.SequenceNumber, sink string) string {
	h := sha256.New()
	for _, s := range []string{feed.Stream, feed.Shard, string(seq), sink} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil)[:10])
}

// Event is an event of a deletion that its subject will never take.
type Event struct {
	Feed      change.Feed // of the record, with the label of its stream
	Seq       change.SequenceNumber
	Version   change.Version
	Created   change.Millis
	TTL       bool
	Keys      []byte // as typed JSON
	Canonical []byte // key
	Body      []byte // JSON
}

// NewOfEvent makes the letter of an event. Its id depends on the record and the sink only.
func NewOfEvent(table, sink string, e Event, code, reason string, now time.Time) *Letter {
	return &Letter{
		ID: idOf(e.Feed, e.Seq, sink), Table: table, Sink: sink, Feed: e.Feed, Seq: e.Seq, Op: change.Remove, TTL: e.TTL,
		Version: e.Version, Created: e.Created, KeyHash: change.HashKey(e.Canonical), Code: code, Reason: reason,
		FirstSeen: now.UTC(), LastTried: now.UTC(), Event: true, Keys: bytes.Clone(e.Keys), Raw: bytes.Clone(e.Body),
	}
}

// CopyItem is an item that a copy could not write.
type CopyItem struct {
	Copy      string // id of the copy
	Keys      []byte // as typed JSON
	Canonical []byte // key
	Version   change.Version
}

// NewOfCopy makes the letter of an item that a copy could not write. Its id depends on copy and key
// only: when the copy reads the item again, it makes the same letter.
func NewOfCopy(table, sink string, x CopyItem, code, reason string, now time.Time) *Letter {
	sum := sha256.Sum256(x.Canonical)
	return &Letter{
		ID: "copy/" + subjectToken.Replace(x.Copy) + "/" + hex.EncodeToString(sum[:10]), Table: table, Sink: sink,
		Copy: x.Copy, Keys: bytes.Clone(x.Keys), Version: x.Version, KeyHash: change.HashKey(x.Canonical),
		Code: code, Reason: reason, FirstSeen: now.UTC(), LastTried: now.UTC(),
	}
}

// subjectToken replaces what may not be in one token of a subject.
var subjectToken = strings.NewReplacer(".", "_", "*", "_", ">", "_", " ", "_", "\t", "_", "\r", "_", "\n", "_")

// ErrNoRecord means that the letter is an item of a copy, or an event: there is no change to apply.
var ErrNoRecord = errors.New("the letter has no record")

// CodeUnreadable is the code of a stored letter that cannot be read, because it is damaged or
// another program published it. Such a Letter has no change, only id, table, code and reason: it
// can be dropped, but never retried.
const CodeUnreadable = "unreadable"

// Change returns the change as it came out of the log, with the version it had. The letter of a
// copy or of an event has none: ErrNoRecord.
func (l *Letter) Change() (*change.Change, error) {
	if l.Copy != "" || l.Event {
		return nil, fmt.Errorf("read letter %s: %w", l.ID, ErrNoRecord)
	}
	r, err := change.ScanRecord(l.Raw)
	if err != nil {
		return nil, fmt.Errorf("read letter %s: %w", l.ID, err)
	}
	return &change.Change{
		Op: l.Op, TTL: l.TTL, Version: l.Version, Created: l.Created, SequenceNumber: l.Seq, Feed: l.Feed, KeyHash: l.KeyHash,
		Raw: r.Raw, Keys: r.Keys, New: r.New, Old: r.Old,
	}, nil
}

// magic and the format number begin every letter. Rule 11: a newer format is refused.
var magic = []byte("TRLT")

// encode returns magic, format, the length of the head, the head as JSON, and the compressed
// record.
func encode(l *Letter) ([]byte, error) {
	head, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encode letter: %w", err)
	}
	b := append(bytes.Clone(magic), conn.FormatNumber)
	b = binary.AppendUvarint(b, uint64(len(head)))
	return append(append(b, head...), s2.Encode(nil, l.Raw)...), nil
}

func decode(b []byte) (*Letter, error) {
	rest, ok := bytes.CutPrefix(b, magic)
	if !ok || len(rest) < 1 {
		return nil, errors.New("decode letter: not a dead letter of the replicator")
	}
	if rest[0] > conn.FormatNumber {
		return nil, fmt.Errorf("decode letter: %w", &conn.FormatError{What: "dead letter", Need: int(rest[0])})
	}
	size, n := binary.Uvarint(rest[1:])
	if rest = rest[1:]; n <= 0 || size > uint64(len(rest)-n) {
		return nil, errors.New("decode letter: it is cut off")
	}
	l := new(Letter)
	if err := json.Unmarshal(rest[n:n+int(size)], l); err != nil {
		return nil, fmt.Errorf("decode letter: %w", err)
	}
	raw, _, err := frame.Decompress(rest[n+int(size):], nil)
	if err != nil {
		return nil, fmt.Errorf("decode letter: %w", err)
	}
	l.Raw = raw
	return l, nil
}
