// Package request stores the requests of commands to the owner of a table: resync single items, or
// retry their dead letters. A request is cut into chunks, which are messages of a stream of their
// own next to the dead letters. The owner does several chunks at once and replaces each by its
// outcome; after a crash or a takeover a chunk without one is done again, which changes nothing.
//
// Requests are not entries of the log, for two reasons: after an append by another process, the
// owner's next append is refused; and a resync waits until the log is applied, so it must not be an
// entry that has to be applied first.
package request

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// The kinds of work that a chunk can request.
const (
	Resync  = "resync"  // make the rows of the items true
	Letters = "letters" // try the items' dead letters again, and resync them
	Heal    = "heal"    // make archival events of what gaps lost, from exports: see HealOrder; without items
	Foreign = "foreign" // delete the cells of Columns where they still belong to no item; Key is not used
)

// MaxChunk is how many bytes of keys fit into a chunk.
const MaxChunk = 192 << 10

// Chunk is a request for up to a few thousand items, and its outcome once it has one.
type Chunk struct {
	ID    string    `json:"id"` // all chunks of one command have the same prefix
	What  string    `json:"what"`
	By    string    `json:"by,omitempty"` // who asked
	Asked time.Time `json:"asked"`
	Items []Item    `json:"items"`
	// Heal is only set with What Heal.
	Heal *HealOrder `json:"heal,omitempty"`

	Outcome *Outcome `json:"outcome,omitempty"`
}

// HealOrder names gaps, and the incremental exports that span them: URLs or ARNs.
type HealOrder struct {
	Gaps    []string `json:"gaps"`
	Exports []string `json:"exports"`
}

// Healed counts the deletions that exports show in the time of gaps.
type Healed struct {
	Events int64 `json:"events"` // archived as class healed
	Known  int64 `json:"known"`  // the stream gave them, or an earlier healing did
	// NoImage are items that were created and deleted within one window: the export does not show
	// them.
	NoImage int64    `json:"without_image"`
	Alive   int64    `json:"deleted"` // their time to live had not passed: somebody deleted them
	Skipped int64    `json:"skipped"` // the mapping does not archive them
	Exports []string `json:"exports"` // ids
	// Unconfirmed are those among Exports that DynamoDB could not confirm. With one of them
	// the gaps stay incomplete.
	Unconfirmed []Unconfirmed `json:"unconfirmed,omitempty"`
}

// Unconfirmed is an export of which it is not known whether it was made with a filter.
type Unconfirmed struct {
	Export string `json:"export"` // id
	Reason string `json:"reason"` // why DynamoDB could not be asked, for people
}

// Item is one item of a chunk.
type Item struct {
	Key     json.RawMessage `json:"key"`               // canonical, in DynamoDB's typed JSON
	Rows    [][]byte        `json:"rows,omitempty"`    // further rows that may hold the item
	Letters []string        `json:"letters,omitempty"` // ids of dead letters to try; empty: all of the item
	// Future is a guard in the future, which the item's rows are known to have.
	Future  change.Version `json:"future,omitempty"`
	Columns []Column       `json:"columns,omitempty"` // only with Foreign
}

// Column is a column of one row of the target.
type Column struct {
	Row       []byte `json:"row"`
	Family    string `json:"family"`
	Qualifier []byte `json:"qualifier"`
}

// Outcome is the result of a chunk. It counts items unless a field's comment names something else.
type Outcome struct {
	Done    time.Time `json:"done"`
	Written int64     `json:"written"`
	Equal   int64     `json:"equal"`
	Left    int64     `json:"left"`
	Hot     int64     `json:"hot"`
	Applied int64     `json:"applied"` // dead letters
	Refused int64     `json:"refused"` // items, or letters that are refused again
	Waiting int64     `json:"waiting"` // letters not tried, because an earlier one of their item was refused
	// Later counts the refused and the waiting letters that a retry from Until on makes needless:
	// their items are true, and only the version of the reading was not above the letters.
	Later   int64     `json:"later,omitempty"`
	Until   time.Time `json:"until,omitzero"`
	Deleted int64     `json:"deleted,omitempty"` // columns
	Healed  *Healed   `json:"healed,omitempty"`
	// Failed is why the owner refuses the whole chunk; empty when it did it.
	Failed string `json:"failed,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// Notes are about single items, by their index in Items and without their keys.
	Notes []Note `json:"notes,omitempty"`
}

// Note is about one item of a chunk.
type Note struct {
	Item   int       `json:"item"`
	Letter string    `json:"letter,omitempty"` // id
	Code   string    `json:"code"`             // hot, or why it was refused
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"` // when it may be tried again: a hot item, or a letter that is too new
}

// NewID returns a new prefix for the ids of a command's chunks.
func NewID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Command returns what the ids of all chunks of one command have in common.
func (c *Chunk) Command() string {
	prefix, _, _ := strings.Cut(c.ID, "-")
	return prefix
}

// Cutter cuts the items of one command into chunks that fit into messages.
type Cutter struct {
	What, By string

	prefix string
	n      int
	size   int
	chunk  *Chunk
}

// Add adds an item. It returns the chunk before it once that is full, else nil.
func (x *Cutter) Add(it Item, now time.Time) (full *Chunk) {
	n := len(it.Key) + 64
	for _, row := range it.Rows {
		n += 2*len(row) + 8
	}
	for _, id := range it.Letters {
		n += len(id) + 4
	}
	for _, c := range it.Columns {
		n += 2*(len(c.Row)+len(c.Family)+len(c.Qualifier)) + 48
	}
	if x.chunk != nil && x.size+n > MaxChunk {
		full = x.Rest()
	}
	if x.chunk == nil {
		if x.prefix == "" {
			x.prefix = NewID()
		}
		id := fmt.Sprintf("%s-%06d", x.prefix, x.n)
		x.chunk, x.size, x.n = &Chunk{ID: id, What: x.What, By: x.By, Asked: now.UTC()}, 0, x.n+1
	}
	x.chunk.Items, x.size = append(x.chunk.Items, it), x.size+n
	return full
}

// Rest returns the chunk that is not full; nil when there is none.
func (x *Cutter) Rest() *Chunk {
	c := x.chunk
	x.chunk = nil
	return c
}

// Split cuts the items of a command into chunks that fit into messages.
func Split(what, by string, items []Item, now time.Time) (chunks []*Chunk) {
	x := Cutter{What: what, By: by}
	for _, it := range items {
		if full := x.Add(it, now); full != nil {
			chunks = append(chunks, full)
		}
	}
	if rest := x.Rest(); rest != nil {
		chunks = append(chunks, rest)
	}
	return chunks
}

// magic and the format number begin every chunk. Rule 11: a newer format is refused.
var magic = []byte("TRLQ")

const format = 1

// errForeign means that a message in the stream is not a chunk.
var errForeign = errors.New("not a request of the replicator")

func encode(c *Chunk) ([]byte, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	b := append(bytes.Clone(magic), format)
	return append(b, s2.Encode(nil, body)...), nil
}

func decode(b []byte) (*Chunk, error) {
	rest, ok := bytes.CutPrefix(b, magic)
	if !ok || len(rest) < 1 || rest[0] == 0 {
		return nil, errForeign
	}
	if rest[0] > format {
		return nil, fmt.Errorf("decode request: %w", &conn.FormatError{What: "request", Need: int(rest[0])})
	}
	if n, err := s2.DecodedLen(rest[1:]); err != nil || n > 16<<20 {
		return nil, errForeign
	}
	body, err := s2.Decode(nil, rest[1:])
	if err != nil {
		return nil, errForeign
	}
	c := new(Chunk)
	if err := json.Unmarshal(body, c); err != nil {
		return nil, errForeign
	}
	return c, nil
}
