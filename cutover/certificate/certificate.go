// Package certificate holds what a cutover certifies: that at a fence in the log of each table of a
// target, DynamoDB and Bigtable were equal. A certificate is JSON with the SHA-256 of its content,
// and with a signature where a key was given. The package is pure: it computes nothing about
// tables, and uses no service.
//
// Files, from the top down:
//
//	certificate.go  the content
//	file.go         the file: canonical form, hash, signature, and its check
//	keys.go         Ed25519 keys in PEM files
package certificate

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"
)

// Format is the format of a certificate, and the highest that this build reads (Rule 11).
const Format = 1

// How both sides were compared.
const (
	HowFull    = "full"
	HowChanged = "full + incremental" // a full comparison before the fence, and behind it what has changed since it began
)

// How it is known that nothing was written to a table that its stream does not show yet.
const (
	Proven  = "proven"  // heartbeats came back through every shard
	Assumed = "assumed" // shards were read, and nothing came
)

// Certificate is what was found about all tables of one target. It holds no keys, rows or values.
type Certificate struct {
	Format   int      `json:"format"`
	ID       string   `json:"id"` // of the fence
	Pipeline string   `json:"pipeline"`
	Target   string   `json:"target"` // full name of the Bigtable table
	Verdict  string   `json:"verdict"`
	Program  Program  `json:"program"`
	Times    Times    `json:"times"`
	Verify   Verify   `json:"verify"`
	Tables   []Table  `json:"tables"`
	Waivers  []Waiver `json:"waivers"` // what was not equal, and was accepted by name
	Says     []string `json:"says"`    // in words: what this proves, and what it does not
}

// Program is the build that issued a certificate.
type Program struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go,omitempty"`
}

// Times are the times of the steps, by the clock of DynamoDB.
type Times struct {
	// QuietSince is the time after which no counted change was created before the fence, and Quiet
	// how long that had to be. Both are absent where another process raised the fence.
	QuietSince time.Time `json:"quiet_since,omitzero"`
	Quiet      string    `json:"quiet,omitempty"`
	Fenced     time.Time `json:"fenced"`
	Drained    time.Time `json:"drained"`   // everything created before it was read, and what the fence allows was applied
	Certified  time.Time `json:"certified"` // the last look at what stands behind the fence
}

// Table is one source table.
type Table struct {
	Source      string    `json:"source"`
	TableID     string    `json:"table_id"`
	Stream      string    `json:"stream"`
	MappingHash string    `json:"mapping_hash"`
	LogCreated  time.Time `json:"log_created"`
	Life        uint64    `json:"life"`
	LogFormat   int       `json:"log_format"`

	Fence   Fence   `json:"fence"`
	Applied uint64  `json:"applied"` // the Bigtable sink's mark: an entry of the log
	Changes uint64  `json:"changes"` // that the log has taken over its life
	Idle    string  `json:"idle"`    // Proven or Assumed
	Shards  []Shard `json:"shards"`  // of the live stream, by id
	Behind  Behind  `json:"behind_fence"`
	Gaps    []Gap   `json:"gaps"`
}

// Fence is the entry of the log behind which nothing is applied to Bigtable.
type Fence struct {
	Entry uint64    `json:"entry"`
	Last  uint64    `json:"last_applied"` // the newest entry with changes before it
	At    time.Time `json:"at"`
}

// Shard is how far a shard was read.
type Shard struct {
	ID       string    `json:"id"`
	Position string    `json:"position"` // the sequence number of the last record; a start position before the first one
	Through  time.Time `json:"through"`
	Done     bool      `json:"done,omitempty"` // read to its end
	Idle     string    `json:"idle"`           // Proven or Assumed
}

// Behind counts what the log holds behind the fence. Anything else than these forbids the
// certificate.
type Behind struct {
	Through uint64 `json:"through"` // the newest entry that was looked at
	Expired int64  `json:"expired"` // items deleted by TTL: their rows are kept
}

// Verify is the comparison of all tables with the target.
type Verify struct {
	How     string    `json:"how"` // HowFull or HowChanged
	Verdict string    `json:"verdict"`
	Began   time.Time `json:"began"` // of the full comparison, as are the counts of what is equal
	Ended   time.Time `json:"ended"`
	Changed *Changed  `json:"changed,omitempty"` // with HowChanged

	Items      int64 `json:"items"`
	Rows       int64 `json:"rows"`
	Cells      int64 `json:"cells"`
	Equal      int64 `json:"equal"`
	EqualByLog int64 `json:"equal_by_log"`
	Kept       int64 `json:"kept"`    // cells that may remain without their item
	Expired    int64 `json:"expired"` // items deleted by TTL behind the fence, compared as they were before
	Foreign    int64 `json:"foreign"`
	Unproven   int64 `json:"unproven"`
	Refused    int64 `json:"refused"`
	Different  int64 `json:"different"`
}

// Sum describes what was equal. After a full comparison that was made before the fence, the number
// of items at the fence is unknown: of the items that have changed since, some were deleted, and
// some are new.
func (v *Verify) Sum() string {
	if v.Changed == nil {
		return english.Plural(int(v.Equal), "item is", "items are") + " equal"
	}
	if v.Changed.Items == 0 {
		return english.Plural(int(v.Equal), "item was", "items were") +
			" equal in the full comparison, and none has changed since"
	}
	return fmt.Sprintf("%s equal in the full comparison, and the %s",
		english.Plural(int(v.Equal), "item was", "items were"), english.Plural(int(v.Changed.Items),
			"item that has changed since is equal", "items that have changed since are equal"))
}

// Changed is the comparison, behind the fence, of the items that have changed since the full one
// began.
type Changed struct {
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	Items int64     `json:"items"`
}

// Gap is a range of the source that was lost before it was read.
type Gap struct {
	ID     string            `json:"id"`
	Since  time.Time         `json:"since"`
	Until  time.Time         `json:"until"`
	Reason string            `json:"reason"`
	Healed map[string]string `json:"healed"` // by sink: what is still missing, "" for nothing
	Waived map[string]string `json:"waived"` // by sink: by whom
}

// Waiver is something that was not equal, or not known, and was accepted by its name.
type Waiver struct {
	Name  string `json:"name"` // aged, foreign, columns:RULE/COLUMN or gap:ID/SINK
	Table string `json:"table,omitempty"`
	Count int64  `json:"count"`
	By    string `json:"by"`
}
