package ir

import (
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

func (p *Program) DefaultOnTTL() string {
	if p.Table.OnTTLExpiry == "" {
		return "delete"
	}
	return p.Table.OnTTLExpiry
}

// LosesTrackOf says whether an expired item that the rule keeps leaves cells behind which its next life does not know of.
func (p *Program) LosesTrackOf(r *Rule) bool {
	return r.OnTTL == "keep" && (r.NeedOld || !p.KeyDecidesRule)
}

// Program is a compiled mapping for one table. It is immutable and safe for concurrent use.
type Program struct {
	Table          Table
	Rules          []*Rule
	FamilyRules    []*FamilyRule
	Families       []Family
	MaxCaptures    int               // most captures of a rule
	KeyDecidesRule bool              // the key alone decides which rule matches
	Wanted         func(string) bool // attributes that conditions or rules read; nil = all
	Coalesces      bool
	Hash           [16]byte
	Reads          []ReadPattern
	Views          []View
}

func (p *Program) KeyType(name string) byte {
	s := p.Table.Schema
	switch {
	case name == s.Partition.Name:
		return s.Partition.Type
	case s.Sort != nil && name == s.Sort.Name:
		return s.Sort.Type
	}
	return 0
}

// DeclaredOwner is what the author said about the row.
func (pl *Plan) DeclaredOwner() string {
	if pl == pl.Rule.Plans[0] {
		return pl.Rule.Src.Owns.S
	}
	for i := range pl.Rule.Src.Index {
		if x := &pl.Rule.Src.Index[i]; &x.Row == pl.Src {
			return x.Owns.S
		}
	}
	return ""
}

// ReadPattern is an access pattern that the mapping documents.
type ReadPattern struct {
	Name   string `json:"name"`
	How    string `json:"how"` // row, prefix, range
	Key    string `json:"key"`
	Family string `json:"family,omitempty"`
	Fold   string `json:"fold,omitempty"` // what the reader does with the cells: sum, max, min, count

	Except []string `json:"except,omitempty"` // columns of the family that the reader leaves out
}

// View is a continuous materialized view over the target table: rows by values of columns, which Bigtable keeps by
// itself and somewhat later. Rows without one of the key columns are not in it.
type View struct {
	Name    string   `json:"name"`
	Key     []Column `json:"key"`
	Columns []Column `json:"columns"`
}

// Column is a column of the target table.
type Column struct {
	Family    string `json:"family"`
	Qualifier string `json:"qualifier"`
}

// Mapping is a mapping file as its author wrote it; nil means the preset default.
type Mapping = lang.Mapping

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

// Named is the class's letter with its name, as messages have it.
func (c Class) Named() string {
	return c.String() + " (" + map[Class]string{ClassR: "replace-row", ClassK: "by-key", ClassD: "by-diff"}[c] + ")"
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
	MaxRowKey    = 4 << 10
	maxQualifier = 16 << 10
	MaxCell      = 100 << 20
	MaxRow       = 256 << 20
	MaxMutations = 100_000
	MaxFamilies  = 100

	MaxTime = 9_000_000_000_000_000 // ms: cell times are microseconds in 64 bits
)
