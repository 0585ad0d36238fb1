package lang

import "time"

// Mapping is one mapping file as its author wrote it.
type Mapping struct {
	File      string `json:"-"`
	At        Text   `json:"-"` // where the mapping begins
	Normal    string `json:"-"` // the file without comments, layout and the secrets that stand in it
	Preset    Text   // default, google, document
	Family    Text   // family of a preset
	Presence  Text   `json:"-"` // column of a preset that every item gets; it becomes an entry of the preset's rule
	Delimiter Text   // "#"
	Segments  Text   // strict, escape, ordered
	Null      Text   // omit, empty
	Types     Text   // column of the type sidecar, "family:qualifier"
	Secrets   []Pair // name → ${ENV}
	PII       []Text // attributes that may not appear in keys and qualifiers
	Families  []Family
	Rules     []Rule
	Reads     []Read `json:"-"` // they, the views and what is acknowledged change no cell
	Views     []View `json:"-"`

	Acknowledged []Text `json:"-"` // codes of warnings that the author knows about; their paths say where they hold
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
	Removed     Text // delete, keep, empty: what a removed attribute gets in a family with history
}

// Rule says what becomes of the items that it matches.
type Rule struct {
	At          Text // S is the name
	Match       []Condition
	When        Text // CEL over item
	Row         Text
	Owns        Text // row, cells; nothing: the compiler decides
	Segments    Text
	Cells       []Emitter
	Index       []Index
	Types       Text
	OnRemove    Text // own, row, tombstone
	OnTTLExpiry Text // delete, keep, archive, archive:<family>
	Drop        bool
	Ignore      []Text // attributes left out on purpose; "*" = all that is not written
	ShareWith   []Text // rules whose cells may be the same, acknowledged
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
	CellID     Text // ts: siblings share the column, the cell time tells them apart
	Collisions Text // acknowledged
	Flatten    Text // maps
	Join       Text
	Format     Text // doc: json, dynamo_json, raw, protobuf
	Value      Text // set: what a member's cell holds
	Null       Text
	Fallback   Text // int64, float64: family for numbers that do not fit
	Mode       Text // list: columns, versions
	Otherwise  Text // map, set, list: refuse, skip, or a column for values of another type
}

// View is a continuous materialized view over the target table, which Bigtable keeps.
type View struct {
	At           Text   // S is the name
	Key, Columns []Text // "family:column"
}

// Read documents an access pattern.
type Read struct {
	At                  Text // S is the name
	Row, Prefix, Range  Text
	Family, Fold        Text
	Except              []Text // columns of the family that the reader leaves out
	AccessPatternInText Text   // of: what the application asked of DynamoDB
}
