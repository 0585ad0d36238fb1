package emit

import (
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// Class is the cause of an item's deletion. Each class has a prefix of its own in the archive.
type Class string

// The classes of archival events.
const (
	ClassTTL      Class = "ttl"      // DynamoDB's TTL deleted the item: the record names the service as its user
	ClassUser     Class = "user"     // somebody deleted it
	ClassInferred Class = "inferred" // deleted without an identity after it had expired: TTL in another region's replica
	ClassHealed   Class = "healed"   // lost in a gap of the stream, and found in an incremental export
)

// Event is an item that was deleted and that the mapping archives. The slices alias the change.
type Event struct {
	Class   Class
	Source  string // table ARN, or pipeline/table where DynamoDB gave none
	Table   string
	Subject string // canonical key of the item, typed JSON

	// The record: label of its stream, shard, sequence number. They identify the event on every
	// replay.
	Stream, Shard string
	Sequence      change.SequenceNumber

	Version change.Version
	Created change.Millis // of the record, whole seconds: when the item was deleted
	Item    []byte        // old image in DynamoDB's typed JSON; nil where the stream has none
	Expiry  string        // value of the TTL attribute in epoch seconds, a decimal; "" where unknown or not a number
}

// PlaceOf returns an event with only the place and time of a deletion, for a deletion that is not
// archived.
func PlaceOf(c *change.Change) *Event {
	e := &Event{Class: ClassUser, Shard: c.Feed.Shard, Sequence: c.SequenceNumber, Created: c.Created}
	if c.TTL {
		e.Class = ClassTTL
	}
	_, e.Stream = cutStream(c.Feed.Stream)
	return e
}

// ID returns the event's id: the same on every replay, and of no other event of the table.
func (e *Event) ID() string { return e.Stream + "/" + e.Shard + "/" + string(e.Sequence) }

// Time returns when the item was deleted, in UTC.
func (e *Event) Time() time.Time { return e.Created.Time().UTC() }

// Data returns the event's JSON: table, keys, item, version, times.
func (e *Event) Data() []byte {
	out := make([]byte, 0, len(e.Subject)+len(e.Item)+128)
	out = change.AppendString(append(out, `{"schema":1,"table":`...), e.Table)
	out = append(append(out, `,"keys":`...), e.Subject...)
	out = append(append(out, `,"item":`...), orNull(string(e.Item))...)
	out = strconv.AppendInt(append(out, `,"version":`...), int64(e.Version), 10)
	out = strconv.AppendInt(append(out, `,"created":`...), int64(e.Created), 10)
	out = append(append(out, `,"expiry":`...), orNull(e.Expiry)...)
	return append(out, '}')
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

// cutStream splits arn:aws:dynamodb:…:table/Name/stream/label into the table's ARN and the label.
func cutStream(stream string) (arn, label string) {
	arn, label, ok := strings.Cut(stream, "/stream/")
	if !ok {
		return "", stream
	}
	return arn, label
}
