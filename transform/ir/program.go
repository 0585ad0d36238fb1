package ir

import (
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Program is a compiled mapping for one table. It is immutable and safe for concurrent use.
type Program struct {
	Table          Table
	Rules          []*Rule
	FamilyRules    []*FamilyRule
	Families       []Family          // those of FamilyRules, as the target table must have them
	MaxCaptures    int               // the most captures that a rule has with one of its indexes
	KeyDecidesRule bool              // the key alone decides which rule takes an item
	Wanted         func(string) bool // attributes that conditions or rules read; nil = all
	Coalesces      bool              // several changes of an item may be united in one write
	SealsKeys      bool              // a key attribute is listed under pii
	RowsByKey      bool              // the key alone gives all rows of an item
	ReadToResync   bool              // some row must be read before an item is resynced
	Hash           [16]byte
	Mapping        *Mapping // with a preset spelled out
	SecretDigests  [][]byte // a keyed hash of each secret
	Reads          []ReadPattern
	Views          []View
}

// Table is what a program is compiled for.
type Table struct {
	Pipeline    string
	Source      string // DynamoDB table
	Target      string // Bigtable table
	Schema      change.KeySchema
	View        string // stream view type; "" = not known yet, taken as NEW_AND_OLD_IMAGES
	TTLAttr     string
	Mapping     *Mapping
	OnTTLExpiry string              // delete (default), keep, archive; a rule's own on_ttl_expiry has precedence
	StripGlobal bool                // leave out the aws:rep:* attributes of old global tables
	Getenv      func(string) string // for the mapping's secrets; nil: they count as unset
}

// Mapping is a mapping file as its author wrote it; nil means the preset default.
type Mapping = lang.Mapping

// Class is the way in which a row's earlier cells are replaced.
type Class byte

// The classes of a row. R (replace-row): the item owns the row, which is replaced as a whole. K
// (by-key): the cells to replace are known from the item's key. D (by-diff): they are found by
// comparing the old and the new image.
const (
	ClassR Class = 'R'
	ClassK Class = 'K'
	ClassD Class = 'D'
)

// String is the class's letter.
func (c Class) String() string { return string(rune(c)) }

// Named is the class's letter with its name, for messages.
func (c Class) Named() string {
	return c.String() + " (" + map[Class]string{ClassR: "replace-row", ClassK: "by-key", ClassD: "by-diff"}[c] + ")"
}

// ReadPattern is an access pattern that the mapping documents.
type ReadPattern struct {
	Name   string `json:"name"`
	How    string `json:"how"` // row, prefix, range
	Key    string `json:"key"`
	Family string `json:"family,omitempty"`
	Fold   string `json:"fold,omitempty"` // what the reader does with the cells: sum, max, min, count

	Except []string `json:"except,omitempty"` // columns of the family that the reader leaves out
	Of     string   `json:"of,omitempty"`     // what the application asked of DynamoDB, as its author wrote it
}

// View is a continuous materialized view over the target table: its rows under a key made of column
// values. Bigtable maintains it by itself, with a delay. A row that lacks one of the key columns is
// not in it.
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

// KeyType returns the type of a key attribute: S, N or B; 0 for any other attribute.
func (p *Program) KeyType(attr string) byte {
	s := p.Table.Schema
	switch {
	case attr == s.Partition.Name:
		return s.Partition.Type
	case s.Sort != nil && attr == s.Sort.Name:
		return s.Sort.Type
	}
	return 0
}

// DefaultOnTTL returns what becomes of an item that TTL deletes when its rule has no on_ttl_expiry:
// delete, keep or archive.
func (p *Program) DefaultOnTTL() string {
	if p.Table.OnTTLExpiry == "" {
		return "delete"
	}
	return p.Table.OnTTLExpiry
}

// LosesTrackOf reports whether the rule keeps the cells of expired items although a new item with
// the same key may not find them: that needs the old image, or another rule may take the new item.
func (p *Program) LosesTrackOf(r *Rule) bool {
	return r.OnTTL == "keep" && (r.NeedOld || !p.KeyDecidesRule)
}
