// Package transform turns a change of an item into what Bigtable and the archive shall hold: a compiler for
// the mapping language, and the program it compiles to. A program is a function of the change and the
// mapping alone: no clock, no I/O, no randomness (Rule 7), so a replay gives the same bytes.
//
// The walk: Compile reads a Mapping against a table's key schema into rules; a rule has row plans; a plan
// has emitters. Project turns an item into rows and cells. Change and Coalesce compare the projections of
// old and new images and give a Write: per row what is deleted, then what is set.
package transform

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/lang"
	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// Mapping is a mapping file as its author wrote it; nil means the preset default.
type Mapping = lang.Mapping

// Problem is one thing that a mapping's author should know.
type Problem = lang.Problem

// Refusal says that a mapping will not take an item, and why: the change becomes a dead letter.
type Refusal = tmpl.Refusal

// ParseMapping reads a mapping file. All its problems are reported at once; the mapping may be compiled
// only if none of them is an error.
func ParseMapping(file string, data []byte) (*Mapping, []Problem) { return lang.Parse(file, data) }

// Table is what a program is compiled for.
type Table struct {
	Pipeline    string
	Source      string // DynamoDB table
	Target      string // Bigtable table
	Schema      change.KeySchema
	View        string // stream view type; "" = not known yet, taken as NEW_AND_OLD_IMAGES
	TTLAttr     string
	Mapping     *Mapping
	OnTTLExpiry string              // delete (default), keep, archive; a rule's own word wins
	StripGlobal bool                // leave out the aws:rep:* attributes of old global tables
	Getenv      func(string) string // for the mapping's secrets; nil: they count as unset
}

// Class says how a row's earlier cells are replaced.
type Class byte

// The classes of a row. R: the item owns the row, it is replaced as a whole. K: the cells are known from the
// item's key. D: the cells are the difference between old and new image.
const (
	ClassR Class = 'R'
	ClassK Class = 'K'
	ClassD Class = 'D'
)

// String is the class's letter.
func (c Class) String() string { return string(rune(c)) }

// Cell is one cell to set.
type Cell struct {
	Family    string
	Qualifier []byte
	Value     []byte
	Time      int64 // ms; counts when Mapped, else the cell's time is the write's version
	Mapped    bool  // the mapping gave the time, which may be 0
	Aggregate bool  // merge Value (64-bit big-endian) with the family's aggregate instead of setting it
	AsItCame  bool  // a document in the source's own JSON: equal ones may differ in their bytes
}

// Delete is a range of cells to delete before the row's cells are set.
type Delete struct {
	Family    string
	Qualifier []byte // nil: the whole family
	From, To  int64  // ms, half open; 0, 0: all versions
	Versioned bool   // cell times are this item's versions: a skipped write may still delete [0, its version)
}

// Row is what one change does to one row: if the row does not hold the item at this version or later, wipe
// it when Exclusive (all families but KeepHistory), run Deletes, then set Cells and the item's marker.
type Row struct {
	Key         []byte
	Class       Class
	Left        bool     // the item leaves the row: mark it dead there; Cells are then archived copies or emptied columns
	Exclusive   bool     // delete the row as a whole first
	KeepHistory []string // families that the wipe spares
	Deletes     []Delete
	Cells       []Cell
}

// Item names an item in guards and markers.
type Item struct {
	Guard [16]byte // SHA-256 over pipeline, table and canonical key, cut
	Table string
	Key   []byte // canonical
}

// Write is everything that one change, or several coalesced ones, do: rows entered first, rows left last.
// A Write is reused: what it holds is valid until the next call that fills it.
type Write struct {
	Item    Item
	Version int64
	Rows    []Row
	// Heals says that the item's rows and columns are functions of its key alone, so that this write repairs
	// whatever an earlier dead letter of the item left behind.
	Heals bool

	mem *memory
}

// Event is an archival event: an item that DynamoDB's TTL deleted.
type Event struct {
	ID      string // stream label / shard / sequence number: the same on every replay
	Source  string // table ARN, or pipeline/table
	Subject string // canonical key of the item
	Time    time.Time
	Data    []byte // JSON
}

// Family is a column family as the target table must have it.
type Family struct {
	Name         string
	MaxVersions  int           // 0 = all
	MaxAge       time.Duration // 0 = for ever
	Intersection bool          // both limits must be passed; otherwise either is enough
	Aggregate    string        // "", max, min, hll: values are merged by the server
}

// The meta families of every target table: which items a row holds, and which ones it held.
const (
	LiveFamily = "_tr_live"
	DeadFamily = "_tr_dead"
)

// Limits of the service, checked before the wire.
// Source: https://cloud.google.com/bigtable/quotas#limits-data-size
const (
	maxRowKey    = 4 << 10
	maxQualifier = 16 << 10
	maxCell      = 100 << 20
	maxRow       = 256 << 20
	maxMutations = 100_000
	maxFamilies  = 100

	maxTime = 9_000_000_000_000_000 // ms: cell times are microseconds in 64 bits
)
