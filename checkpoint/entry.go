package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
)

var magic = []byte("TRLG")

// Entry is one message of the log.
type Entry struct {
	Kind  Kind
	Epoch uint64
	Nonce Nonce
	Prev  Hash // of the entry before this one; messages that are not entries of the chain do not count
	// Body is a *Claim, *Release, *Start, *Graph, *Frame, *Beat, *Marks, *Gap, *Control, *Snapshot,
	// *Copy, *CopyMarks or *Healed.
	Body any
	Data []byte
}

// Claim takes the log over. Its epoch is one more than the epoch of the claim before.
type Claim struct {
	Owner    string    `json:"owner"`
	Life     uint64    `json:"life,omitempty"`
	Identity *Identity `json:"identity,omitempty"` // on the first claim of a life
	// Format of a new log, on its first claim.
	Format int `json:"format,omitempty"`
	// Reads is the highest format that the owner's build reads.
	Reads int `json:"reads,omitempty"`
}

// Identity is what a log belongs to. It must equal the identity in the pipeline's row in Bigtable.
type Identity struct {
	Pipeline string `json:"pipeline"`
	Table    string `json:"table"`
	TableID  string `json:"table_id"`
	Mapping  string `json:"mapping"` // hash of the mapping that projected what is in the target
}

// Release gives the log up, so that the next owner need not wait until the claim has expired.
type Release struct {
	// To is the owner that the log is handed over to; empty: the first that claims it.
	To string `json:"to,omitempty"`
}

// Start stores where every shard of a stream starts. A stream has one, which never changes (Rule
// 3).
type Start struct {
	Stream string         `json:"stream"`         // ARN
	Mode   string         `json:"mode,omitempty"` // start position as it was configured
	At     change.Millis  `json:"at"`             // start position; 0 = trim horizon
	Date   change.Millis  `json:"date"`           // when the listing began
	Floor  change.Version `json:"floor"`          // every version of this stream is above it
	Shards []ShardSeen    `json:"shards"`
	// Backfill is where the items come from that are older than the stream: FromScan, FromExport,
	// or empty for nowhere.
	Backfill string `json:"backfill,omitempty"`
	// NotCopied is how many items the table held, as DynamoDB counts them, where Backfill is empty
	// and the stream does not hold all of them either.
	NotCopied int64 `json:"not_copied,omitempty"`
	// Recover begins a life that keeps the rows of an earlier one: the whole table is resynced.
	Recover bool `json:"recover,omitempty"`
	// After is set where records are read that are older than the life: only those created since
	// then get versions above Floor, and only these are applied to Bigtable.
	After change.Millis `json:"after,omitempty"`
	// Part of Parts, from 0, when one entry does not hold all shards. The rest is the same in all
	// of them.
	Part  int `json:"part,omitempty"`
	Parts int `json:"parts,omitempty"`
}

// ShardSeen is a shard as a listing showed it.
type ShardSeen struct {
	ID     string `json:"id"`
	Parent string `json:"parent,omitempty"`
	Closed bool   `json:"closed,omitempty"`
}

// Graph is a later listing of a stream.
type Graph struct {
	Stream   string        `json:"stream"`
	Date     change.Millis `json:"date"`
	Complete bool          `json:"complete,omitempty"` // every page of it was read
	Disabled bool          `json:"disabled,omitempty"` // the stream takes no more writes: its leaves are its end
	Enabled  bool          `json:"enabled,omitempty"`  // takes back an earlier Disabled
	Shards   []ShardSeen   `json:"shards,omitempty"`
	// Gone are shards that a complete listing, begun after their child was listed, did not show,
	// and that the service itself no longer has.
	Gone []string `json:"gone,omitempty"`
	// Delta means that Shards holds only shards that are new or differ from the state, and Absent
	// the finished ones that this complete listing is the first not to show.
	Delta  bool     `json:"delta,omitempty"`
	Absent []string `json:"absent,omitempty"`
}

// Frame holds pages; the records of all of them are the entry's Data, packed by package queue.
type Frame struct {
	Pages []PageHead `json:"pages"`
}

// PageHead is a page without its records.
type PageHead struct {
	Feed      change.Feed     `json:"feed"`
	From      change.Position `json:"from"`
	To        change.Position `json:"to"`
	ClockFrom change.Version  `json:"clock_from"`
	Clock     change.Version  `json:"clock"`
	Done      bool            `json:"done,omitempty"`
	Date      change.Millis   `json:"date"`             // of the request
	Oldest    change.Millis   `json:"oldest,omitempty"` // creation time of the first record
	Newest    change.Millis   `json:"newest,omitempty"` // creation time of the last record
	Records   int             `json:"records"`
	Offset    int             `json:"offset"` // of the records in the unpacked Data
	Length    int             `json:"length"`
	Expired   CountsByHour    `json:"expired,omitempty"` // records that are deletions by TTL
}

// Watermark returns the time up to which the page proves that everything was read: the creation of
// its newest record, or, when it was empty, two seconds before it was requested.
func (p *PageHead) Watermark() change.Millis {
	if p.Records > 0 {
		return p.Newest - 1000
	}
	return p.Date - visibilityDelay
}

// ReadFrom returns the time of the service from which on an empty page shows that everything of its
// shard is read that was created up to a time. PageHead.Watermark is its inverse.
func ReadFrom(through change.Millis) change.Millis { return through + visibilityDelay }

// visibilityDelay is how long a committed change may take to show up in its shard.
const visibilityDelay = 2000

// openUntil returns up to when a shard took all writes that a listing shows open.
//
// Rule 10: changes of its children are created later, and are not read yet. A listing may show a
// shard open for visibilityDelay after its end, and the creation time of a change is rounded down
// to the second.
func openUntil(listed change.Millis) change.Millis { return listed - visibilityDelay - 1000 }

// Beat shows that the owner is alive, and how far idle shards have been read.
type Beat struct {
	Date   change.Millis `json:"date"`             // service clock advanced by the owner's monotonic clock
	Listed change.Millis `json:"listed,omitempty"` // when the newest complete listing began
	// Watermark is the time up to which every open shard has been read that does not stand before a
	// gap. One number serves all of them, so a beat of ten thousand shards is as small as a beat of
	// one.
	Watermark change.Millis `json:"through,omitempty"`
	// Proven is the time up to which heartbeats prove the same of every open shard. Assumed counts
	// the shards without such a proof.
	Proven  change.Millis `json:"proven,omitempty"`
	Assumed int           `json:"assumed,omitempty"`
	// Invented stands for a member of a newer format: see newerFormat. No release sets it.
	Invented bool `json:"invented,omitempty"`
}

// Marks moves sinks forward. A mark names the entry up to which everything is durable at the sink
// (Rule 1).
type Marks struct {
	Sinks map[string]Mark `json:"sinks"`
	// Retired are sinks that are no longer configured: their marks are dropped, and hold back no
	// trimming.
	Retired []string `json:"retired,omitempty"`
	// Archive is the end of the archive's manifests and of its stream, where they have moved.
	Archive *ArchiveHead `json:"archive,omitempty"`
}

// Mark is how far a sink has applied the log.
type Mark struct {
	Seq  uint64 `json:"seq"`
	Hash Hash   `json:"hash"` // of the newest entry at or before Seq
}

// Gap is a range of the source that was lost before it was read (Rule 8). A resync repairs it.
type Gap struct {
	Feed   change.Feed     `json:"feed"`
	From   change.Position `json:"from"`
	Since  change.Millis   `json:"since"`           // changes made after this time may be lost …
	Until  change.Millis   `json:"until,omitempty"` // … up to this
	Reason string          `json:"reason"`
	Found  change.Millis   `json:"found"` // service clock
	// Ends means that nothing is left to read in the shard. Otherwise reading goes on at the trim
	// horizon once the gap is accepted.
	Ends     bool `json:"ends,omitempty"`
	Accepted bool `json:"accepted,omitempty"` // reading went on behind it
	// In the state only: the sinks that had begun when the gap was found, and the waivers among
	// them.
	Sinks  []string          `json:"sinks,omitempty"`
	Waived map[string]Waiver `json:"waived,omitempty"`
	// In the state only: the highest version when the gap was accepted, and the sinks for which it
	// was healed.
	Above  change.Version     `json:"above,omitempty"`
	Healed map[string]Healing `json:"healed,omitempty"`
	// In the state only: nothing is known to be lost.
	Doubt Doubt `json:"doubt,omitempty"`
	// In the state only: a copy was cancelled, and what it had not copied is missing.
	Canceled bool `json:"canceled,omitempty"`
}

// Control changes what the owner does with the table. Anyone may append one. It makes the owner's
// next append fail, so that the owner folds the log again and finds it.
type Control struct {
	Pause     *bool         `json:"pause,omitempty"`
	Halt      *Halt         `json:"halt,omitempty"`
	Clear     bool          `json:"clear,omitempty"`  // the halt is over: the sink went on without an operator
	ClearSink string        `json:"of,omitempty"`     // the sink whose halt Clear ends; empty = all
	Resume    bool          `json:"resume,omitempty"` // clears all halts, and reads on behind the gaps
	Waive     *Waive        `json:"waive,omitempty"`
	Copy      *CopyOrder    `json:"copy,omitempty"`
	Resync    *ResyncOrder  `json:"resync,omitempty"`
	Accept    *Accept       `json:"accept,omitempty"`
	Fence     *FenceOrder   `json:"fence,omitempty"`
	Certify   *Certify      `json:"certify,omitempty"`
	Verified  *Verified     `json:"verified,omitempty"`
	By        string        `json:"by,omitempty"`
	At        change.Millis `json:"at,omitempty"`
}

// Halt holds why a sink stopped.
type Halt struct {
	Sink   string        `json:"sink"`
	Seq    uint64        `json:"seq"`
	Code   string        `json:"code"`
	Reason string        `json:"reason"`
	At     change.Millis `json:"at"`
	// Held is true when the sink stands before a change that it will never take, because the table
	// halts at refusals.
	Held bool `json:"held,omitempty"`
}

// Snapshot is one part of the state as it was before the first part. The entry's Data is the
// content.
type Snapshot struct {
	Part  int    `json:"part"` // from 0
	Parts int    `json:"parts"`
	First uint64 `json:"first,omitempty"` // sequence of part 0; 0 in part 0 itself
	// Format of the state inside, and of the log from here on.
	Format int `json:"format,omitempty"`
}

// ErrForeign means that a message is not an entry.
var ErrForeign = errors.New("not an entry")

// Encode appends the stored form of an entry: magic, the lowest format that holds it, kind, epoch,
// nonce, hash of the predecessor, the body as JSON with its length, and the data.
func Encode(dst []byte, e *Entry) ([]byte, error) {
	format := FormatOf(e.Body)
	if format > Format {
		return nil, fmt.Errorf("encode entry: %w", &NewerFormatError{Need: format, Reads: Format})
	}
	body, err := json.Marshal(e.Body)
	if err != nil {
		return nil, fmt.Errorf("encode entry: %w", err)
	}
	dst = append(dst, magic...)
	dst = append(dst, byte(format), byte(e.Kind))
	dst = binary.AppendUvarint(dst, e.Epoch)
	dst = append(dst, e.Nonce[:]...)
	dst = append(dst, e.Prev[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	dst = append(dst, body...)
	return append(dst, e.Data...), nil
}

// Decode reads an entry. Its Data aliases msg. Errors: ErrForeign, also for a broken entry;
// *NewerFormatError.
func Decode(msg []byte) (*Entry, error) { return decode(msg, Format) }

// decode is Decode of a build that reads formats up to highest.
func decode(msg []byte, highest int) (*Entry, error) {
	rest, ok := bytes.CutPrefix(msg, magic)
	if !ok || len(rest) < 2 || rest[0] == 0 {
		return nil, ErrForeign
	}
	if int(rest[0]) > highest {
		return nil, &NewerFormatError{Need: int(rest[0]), Reads: highest}
	}
	e := &Entry{Kind: Kind(rest[1])}
	rest = rest[2:]
	epoch, n := binary.Uvarint(rest)
	if n <= 0 || len(rest) < n+len(e.Nonce)+len(e.Prev) {
		return nil, ErrForeign
	}
	e.Epoch, rest = epoch, rest[n:]
	rest = rest[copy(e.Nonce[:], rest):]
	rest = rest[copy(e.Prev[:], rest):]
	size, n := binary.Uvarint(rest)
	if n <= 0 || size > uint64(len(rest)-n) {
		return nil, ErrForeign
	}
	body := rest[n : n+int(size)]
	if e.Body = newBody(e.Kind); e.Body == nil {
		return nil, ErrForeign
	}
	if err := json.Unmarshal(body, e.Body); err != nil {
		return nil, errors.Join(ErrForeign, fmt.Errorf("decode %s entry: %w", e.Kind, err))
	}
	if need := FormatOf(e.Body); need > highest {
		return nil, &NewerFormatError{Need: need, Reads: highest}
	}
	e.Data = rest[n+int(size):]
	return e, nil
}
