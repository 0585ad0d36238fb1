package lang

import (
	"time"

	"github.com/tailrace-cdc/replicator/problem"
)

// Text is a scalar of a mapping file with its place.
type Text = problem.Text

// Mapping is the content of one mapping file.
type Mapping struct {
	File      string `json:"-"`
	At        Text   `json:"-"` // where the mapping begins
	Normal    string `json:"-"` // the file without comments, layout and secrets in clear
	Preset    Text   // default, google, document
	Family    Text   // family of a preset
	Presence  Text   `json:"-"` // with a preset: the column that every item gets
	Delimiter Text   // "#"
	Segments  Text   // strict, escape, ordered
	Null      Text   // omit, empty
	Types     Text   // column of the type sidecar, "family:qualifier"
	Secrets   []Pair // name → ${ENV}
	PII       []Text // attributes that may not appear in keys and qualifiers
	Families  []Family
	Rules     []Rule
	Reads     []Read `json:"-"` // reads, views and acknowledgements change no cell
	Views     []View `json:"-"`

	Acknowledged []Text `json:"-"` // codes of intended warnings; the path says for which block
}

// Pair is a named scalar.
type Pair struct {
	Name  string
	Value Text
}

// Family is a declared column family.
type Family struct {
	At          Text // S is the name
	MaxVersions int  // 0 = all
	MaxAge      time.Duration
	Combine     Text // union (either limit collects) or intersection (both must be passed)
	Aggregate   Text // max, min, hll: cells are merged by the server
	Expires     bool // expires_by_timestamp: cell time is the expiry
	Removed     Text // delete, keep, empty: what happens to the column of a removed attribute, with history
}

// Rule selects items by match and when, and describes the rows and cells that they are written to.
type Rule struct {
	At          Text // S is the name
	Match       []Condition
	When        Text // CEL over item
	Row         Text
	Owns        Text // row, cells; empty: the compiler decides
	Segments    Text
	Cells       []Emitter
	Index       []Index
	Types       Text
	OnRemove    Text // own, row, tombstone
	OnTTLExpiry Text // delete, keep, archive, archive:<family>
	Drop        bool
	Ignore      []Text // attributes left out on purpose; "*": all that are not written
	ShareWith   []Text // rules that may write the same cells, acknowledged by the author
	Collisions  Text   // acknowledged
}

// Condition is a test of one attribute.
type Condition struct {
	At      Text // S is the attribute
	Pattern Text
	Equals  Text
	In      []Text
	Type    Text
	Exists  *bool
}

// Index is a further row that the rule writes.
type Index struct {
	At    Text // S is the name
	Match []Condition
	When  Text
	Row   Text
	Owns  Text
	Cells []Emitter
}

// Emitter turns one source form into cells.
type Emitter struct {
	At         Text
	Kind       string // attr, attrs, map, set, list, doc, const
	Name       Text   // attr, map, set, list: the attribute; const: the value
	All        bool
	Names      []Text
	Except     []Text
	Rename     []Pair
	To         Text
	As         Text
	TS         Text
	TSMissing  Text // refuse, version, skip, never
	CellID     Text // ts: several items share the column, and the cell time distinguishes them
	Collisions Text // acknowledged
	Flatten    Text // maps
	Join       Text
	Format     Text // doc: json, dynamo_json, raw, protobuf
	Value      Text // set: what a member's cell holds
	Null       Text
	Fallback   Text // int64, float64: family for numbers that do not fit
	Mode       Text // list: columns, versions
	Otherwise  Text // map, set, list: refuse, skip, or a column, for values of another type
}

// View is a continuous materialized view over the target table, maintained by Bigtable.
type View struct {
	At           Text   // S is the name
	Key, Columns []Text // "family:column"
}

// Read documents an access pattern.
type Read struct {
	At                  Text // S is the name
	Row, Prefix, Range  Text
	Family, Fold        Text
	Except              []Text // columns of the family that the reader does not use
	AccessPatternInText Text   // of: what the application asked of DynamoDB
}
