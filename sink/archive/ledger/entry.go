package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/transform"
)

// Format is the highest format of an entry that this build reads, and the one that it writes.
//
// Rule 11: a newer one is refused.
const Format = 1

// Kind is the type of an entry: one byte of its stored form.
type Kind byte

// The kinds of entries.
const (
	KindClaim      Kind = 'c' // an owner of the table's log begins to write
	KindEvents     Kind = 'e' // events of some records of the table's log
	KindIntent     Kind = 'i' // an object is about to be created
	KindDone       Kind = 'd' // it is there
	KindSuperseded Kind = 's' // it will not be created: its events go into another one
	KindAdopted    Kind = 'a' // an object was found whose intent is not in the stream
	KindSubject    Kind = 'p' // how far the subject is
	KindManifest   Kind = 'm' // hours are closed
	KindPlaced     Kind = 'l' // where the objects are from now on
	KindColumns    Kind = 'o' // columns that objects have from now on
	KindSnapshot   Kind = 'n' // a part of the whole state
)

// Claim begins the entries of an owner.
type Claim struct {
	Owner string `json:"owner"`
	// Life and Epoch identify the claim of the table's log: an owner that has been replaced by a
	// later one there writes nothing here.
	Life  uint64        `json:"life,omitempty"`
	Epoch uint64        `json:"epoch"`
	Date  change.Millis `json:"date"`
	// Objects and Subject are the sinks of the archive. A new sink begins here, or, in a new
	// stream, with the first event.
	Objects bool `json:"objects,omitempty"`
	Subject bool `json:"subject,omitempty"`
	// FromStart is set when the table's log held no records. Only the first claim's value is used:
	// without it the archive lacks what expired earlier in its first hour.
	FromStart bool `json:"from_start,omitempty"`
	// Resumed is set when the table had no archive for a time: it begins again at the end of the
	// table's log.
	Resumed bool `json:"resumed,omitempty"`
	// Lost is set when events may be missing, because the stream or its end was lost.
	Lost *Lost `json:"lost,omitempty"`
}

// Lost is a range of hours in which the archive may lack events.
type Lost struct {
	ID    string      `json:"id"`
	Why   string      `json:"why"`
	Since layout.Hour `json:"since"` // 0: unknown
	Until layout.Hour `json:"until"` // including it
}

// Events are the deletions in the table's log, in its order. The events that are kept are in the
// entry's data, a block for each group.
type Events struct {
	Table  string  `json:"table"`
	Source string  `json:"source"` // table ARN
	Groups []Group `json:"groups,omitempty"`
	// Shards are where each shard is now.
	Shards map[string]Shard       `json:"shards,omitempty"`
	Counts map[layout.Hour]Counts `json:"counts,omitempty"`
}

// Group are the events of an entry of one class and hour.
type Group struct {
	Class    transform.EventClass `json:"class"`
	Hour     layout.Hour          `json:"hour"`
	Coverage coverage.Set         `json:"cover"`
	Events   int64                `json:"events"`
	Offset   int                  `json:"at"` // of the block in the entry's data
	Length   int                  `json:"bytes"`
}

// Shard is how far the records of a shard are copied.
type Shard struct {
	Seen change.SequenceNumber `json:"seen"` // every record up to here is copied, or need not be
	// From is where the next interval of a class begins; First is set when it need not touch the
	// one before.
	From map[transform.EventClass]Edge `json:"from,omitempty"`
	Hour layout.Hour                   `json:"hour"` // of the newest record
	// Copied is when that was copied: what waited in the table's log for days may come again as
	// soon as it is copied.
	Copied layout.Hour `json:"copied,omitempty"`
}

// Edge is where an interval begins.
type Edge struct {
	Seq   change.SequenceNumber `json:"seq"`
	First bool                  `json:"first,omitempty"`
}

// Counts are deletions by TTL in an hour.
type Counts struct {
	Deleted int64 `json:"deleted,omitempty"`
	Skipped int64 `json:"skipped,omitempty"` // the mapping does not archive them
	Letters int64 `json:"letters,omitempty"` // they are dead letters
	// Added is set when earlier deletions of the hour were counted too, and their count is
	// forgotten.
	Added bool `json:"added,omitempty"`
}

func (c *Counts) add(other Counts) {
	c.Deleted += other.Deleted
	c.Skipped += other.Skipped
	c.Letters += other.Letters
}

// Intent is stored before an object is created, so that the next owner creates the same object
// after a crash.
type Intent struct {
	Name     string               `json:"name"`
	Class    transform.EventClass `json:"class"`
	Hour     layout.Hour          `json:"hour"`
	First    uint64               `json:"first"` // its events are those of the part in the entries from here …
	Last     uint64               `json:"last"`  // … to here
	Coverage coverage.Set         `json:"cover"`
	Events   int64                `json:"events"`
	Stored   int64                `json:"stored"` // bytes of its blocks in the stream
	Digest   string               `json:"digest"`
	Config   string               `json:"config"` // hash of the configuration that made it
}

// Done notes that an object exists.
type Done struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Superseded notes that an object does not exist and will not be created.
type Superseded struct {
	Name string `json:"name"`
}

// Adopted is an object that exists without an intent in the stream.
type Adopted struct {
	manifest.Object
	Class    transform.EventClass `json:"class"`
	Hour     layout.Hour          `json:"hour"`
	Coverage coverage.Set         `json:"cover"`
}

// Subject notes that all entries up to Seq are published.
type Subject struct {
	Seq uint64 `json:"seq"`
}

// ManifestWritten notes that a manifest exists.
type ManifestWritten struct {
	Head manifest.Head `json:"head"`
	// Closed is the hour before which all are closed.
	Closed layout.Hour `json:"closed"`
	// Named are the objects that it names. In one that was found in the bucket, they need not be
	// known.
	Named []string `json:"named,omitempty"`
}

// Placed names the place of the objects from now on.
type Placed struct {
	Place string `json:"place"`
	// Anew is set when the new place lacks the manifests and objects of the previous one: a new
	// chain begins.
	Anew bool `json:"anew,omitempty"`
}

// ColumnsAdded are configured columns that objects have from now on, by name: new ones, and known
// ones that are taken from another attribute. A column keeps its type, and none is taken away, so
// that readers can unite all objects.
type ColumnsAdded struct {
	Columns map[string]Column `json:"columns"`
}

// Column is a column of Parquet objects besides those that each object has.
type Column struct {
	Path []string `json:"path"`
	Type string   `json:"type"`
}

// Snapshot is one part of the state as it was before the first part; the entry's data is the
// content.
type Snapshot struct {
	Part  int    `json:"part"` // from 0
	Parts int    `json:"parts"`
	First uint64 `json:"first"` // sequence of part 0
}

// Hash identifies an entry and everything before it: half of the SHA-256 of its stored form.
type Hash [16]byte

// String returns the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes String.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// HashOf returns the hash of an entry as it is stored.
func HashOf(msg []byte) (h Hash) {
	sum := sha256.Sum256(msg)
	copy(h[:], sum[:])
	return h
}

// Entry is one message of the stream.
type Entry struct {
	Kind Kind
	Prev Hash // of the entry before; zero in the first one
	Body any  // a pointer to the type of the kind
	Data []byte
}

var magic = []byte("TRA")

// ErrForeign means that a message is not an entry.
var ErrForeign = errors.New("not an entry of an archive")

// Stray reports whether a message is not an entry of an archive: it lacks the bytes that every
// entry begins with. Another client published it on the stream's subject.
func Stray(msg []byte) bool { return !bytes.HasPrefix(msg, magic) }

// NewerFormatError means that a newer build wrote the entry.
type NewerFormatError struct{ Need int }

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("entry of the archive has format %d, this build reads up to %d: upgrade the replicator",
		e.Need, Format)
}

// Encode returns the stored form: magic, format, kind, hash of the predecessor, the body as JSON
// with its length, data.
func Encode(body any, prev Hash, data []byte) ([]byte, error) {
	kind := kindOf(body)
	text, err := json.Marshal(body)
	if err != nil || kind == 0 {
		return nil, fmt.Errorf("encode entry %T: %w", body, err)
	}
	out := make([]byte, 0, len(magic)+2+len(prev)+binary.MaxVarintLen64+len(text)+len(data))
	out = append(append(out, magic...), Format, byte(kind))
	out = append(out, prev[:]...)
	out = binary.AppendUvarint(out, uint64(len(text)))
	return append(append(out, text...), data...), nil
}

// Decode reads what Encode writes. The data aliases msg. Errors: ErrForeign, *NewerFormatError.
func Decode(msg []byte) (*Entry, error) {
	rest, ok := bytes.CutPrefix(msg, magic)
	if !ok || len(rest) < 2+len(Hash{}) || rest[0] == 0 {
		return nil, ErrForeign
	}
	if rest[0] > Format {
		return nil, &NewerFormatError{Need: int(rest[0])}
	}
	e := &Entry{Kind: Kind(rest[1]), Body: newBody(Kind(rest[1]))}
	rest = rest[2:]
	rest = rest[copy(e.Prev[:], rest):]
	size, n := binary.Uvarint(rest)
	if n <= 0 || size > uint64(len(rest)-n) || e.Body == nil {
		return nil, ErrForeign
	}
	if err := json.Unmarshal(rest[n:n+int(size)], e.Body); err != nil {
		return nil, errors.Join(ErrForeign, err)
	}
	e.Data = rest[n+int(size):]
	return e, nil
}

func newBody(k Kind) any {
	switch k {
	case KindClaim:
		return new(Claim)
	case KindEvents:
		return new(Events)
	case KindIntent:
		return new(Intent)
	case KindDone:
		return new(Done)
	case KindSuperseded:
		return new(Superseded)
	case KindAdopted:
		return new(Adopted)
	case KindSubject:
		return new(Subject)
	case KindManifest:
		return new(ManifestWritten)
	case KindPlaced:
		return new(Placed)
	case KindColumns:
		return new(ColumnsAdded)
	case KindSnapshot:
		return new(Snapshot)
	}
	return nil
}

func kindOf(body any) Kind {
	switch body.(type) {
	case *Claim:
		return KindClaim
	case *Events:
		return KindEvents
	case *Intent:
		return KindIntent
	case *Done:
		return KindDone
	case *Superseded:
		return KindSuperseded
	case *Adopted:
		return KindAdopted
	case *Subject:
		return KindSubject
	case *ManifestWritten:
		return KindManifest
	case *Placed:
		return KindPlaced
	case *ColumnsAdded:
		return KindColumns
	case *Snapshot:
		return KindSnapshot
	}
	return 0
}
