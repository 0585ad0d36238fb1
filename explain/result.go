package explain

import (
	"encoding/json"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/transform"
	"github.com/tailrace-cdc/replicator/verify"
)

// Item is what explain --key found. Row, Class, Cells and Deletes are once more the parts of the
// first row that the mapping makes, for scripts.
type Item struct {
	Schema  int             `json:"schema"` // set by the command
	Table   string          `json:"table"`
	Target  string          `json:"target"`
	Key     json.RawMessage `json:"key"` // canonical
	KeyHash string          `json:"key_hash"`
	Verdict Verdict         `json:"verdict"`

	Read       time.Time       `json:"read"` // when the item was read, by the service's clock
	Absent     bool            `json:"absent"`
	Attributes []Attribute     `json:"attributes"`
	Image      json.RawMessage `json:"item,omitempty"` // only with data

	*transform.Steps
	Row     string                 `json:"row,omitempty"`
	Class   string                 `json:"class,omitempty"`
	Cells   []transform.StepCell   `json:"cells"`
	Deletes []transform.StepDelete `json:"deletes"`

	Stored   []StoredRow          `json:"stored"`
	Log      *History             `json:"log,omitempty"`
	Letters  []deadletter.Summary `json:"letters"`
	Requests []Request            `json:"requests"`
	Unknown  []string             `json:"unknown"` // what could not be looked at, and why
}

// Attribute is an attribute of the item.
type Attribute struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Bytes int    `json:"bytes"` // of its value, as DynamoDB counts them
}

// StoredRow is what a row in Bigtable holds of an item.
type StoredRow struct {
	Row       string         `json:"row"`
	RowBase64 []byte         `json:"row_base64,omitempty"` // where the row's key is shown
	Missing   bool           `json:"missing"`              // Bigtable has no such row
	Wanted    bool           `json:"wanted"`               // the item should be in it
	Guard     change.Version `json:"guard,omitempty"`      // version of the item in the row; 0: the row does not hold it
	GuardTime *time.Time     `json:"guard_time,omitempty"`
	Deleted   change.Version `json:"deleted,omitempty"` // version at which the item was taken out of the row
	Sealed    bool           `json:"sealed,omitempty"`  // its guard may be one that is sealed with an unknown secret
	Cells     []StoredCell   `json:"cells"`
	// Refused is the dead letter of the first change that the row lacks because Bigtable or the
	// mapping refused it.
	Refused *RefusedChange `json:"refused,omitempty"`
	Others  int            `json:"others"` // cells in the row that are not known to be this item's

	differs bool // it is not as it should be
}

// RefusedChange is a change that a row lacks.
type RefusedChange struct {
	Letter  string         `json:"letter"` // ID of the dead letter
	Version change.Version `json:"version"`
	Reason  string         `json:"reason"`
}

// StoredCell is one cell of an item, in Bigtable or missing there.
type StoredCell struct {
	Family    string         `json:"family"`
	Qualifier string         `json:"qualifier"`
	Version   change.Version `json:"version,omitempty"` // its timestamp
	Time      *time.Time     `json:"time,omitempty"`
	State     string         `json:"state"`
	Bytes     int            `json:"bytes"`
	Value     string         `json:"value,omitempty"` // only with data
	Want      string         `json:"want,omitempty"`  // only with data, where the cell differs or is missing
	// Outside is set on a differing cell that is newer than the item in the row: the replicator did
	// not write it.
	Outside bool `json:"outside,omitempty"`
}

// The states of a stored cell.
const (
	CellEqual   = "equal"
	CellDiffers = "differs"
	CellMissing = "missing"
	CellExtra   = "extra" // it is the item's, which should not have it
	// CellOutdated is the item's, from before a change that the mapping refuses.
	CellOutdated = "outdated"

	CellOlder = "older" // hidden below a newer version
	CellAged  = "aged"  // it is too old to be compared: Bigtable may delete it at any time
	CellKept  = "kept"  // it may outlive the item
)

// History is what the log holds of an item.
type History struct {
	First   uint64            `json:"first"` // entries of the log
	Last    uint64            `json:"last"`
	Trimmed bool              `json:"trimmed"` // older entries were deleted
	Oldest  *time.Time        `json:"oldest,omitempty"`
	Marks   map[string]uint64 `json:"marks"`   // by sink
	Changes int               `json:"changes"` // of the item
	Entries []Change          `json:"entries"` // the newest of them, oldest first
}

// Change is one change of the item in the log.
type Change struct {
	Seq     uint64         `json:"seq"`
	Op      string         `json:"op"`
	TTL     bool           `json:"ttl"`
	Version change.Version `json:"version"`
	Created time.Time      `json:"created"`
	Shard   string         `json:"shard"`
	Applied []string       `json:"applied"` // sinks, by their stored marks, which follow within a second
	// Refused are the sinks that have the change as an open dead letter. Their marks pass it as
	// well.
	Refused []string `json:"refused,omitempty"`
	// BehindFence is set where the change stands behind a cutover's fence: Bigtable never gets it
	// unless the fence is taken away.
	BehindFence bool `json:"behind_fence,omitempty"`
}

// Request is a request of a command that waits for the owner of the table.
type Request struct {
	ID    string    `json:"id"`
	What  string    `json:"what"`
	By    string    `json:"by,omitempty"`
	Asked time.Time `json:"asked"`
}

// Verdict is one sentence about an item or a row, and its parts for scripts.
type Verdict struct {
	Status   Status  `json:"status"`
	Sentence string  `json:"sentence"`
	Proven   bool    `json:"proven"`  // Bigtable is proven to have every change up to the reading of the item
	Pending  int     `json:"pending"` // changes of the item in the log that are to be applied
	ETA      float64 `json:"eta_s,omitempty"`
	Next     string  `json:"next,omitempty"` // what to do, where something is to be done
	// Cells are the first differing cells, only with data.
	Cells []verify.CellDifference `json:"cells,omitempty"`
}

// Status is what is true of an item or a row.
type Status string

// The statuses.
const (
	Equal      Status = "equal"
	EqualByLog Status = "equal_by_log" // it changes all the time, and its rows are what the log says
	Kept       Status = "kept"         // there is no such item, and its cells may remain
	Behind     Status = "behind"       // changes of it are in the log and not in Bigtable yet
	NotStarted Status = "not_started"  // nothing of the table was ever replicated, or it was retired
	Different  Status = "different"
	Refused    Status = "refused" // by the mapping
	Unproven   Status = "unproven"
)

// Good reports whether nothing has to be done: equal, or on its way.
func (v *Verdict) Good() bool {
	return v.Status != Different && v.Status != Refused && v.Status != Unproven
}

// Row is what explain --row found.
type Row struct {
	Schema    int         `json:"schema"` // set by the command
	Target    string      `json:"target"`
	Row       string      `json:"row"`
	RowBase64 []byte      `json:"row_base64"`
	Missing   bool        `json:"missing"` // Bigtable has no such row
	Verdict   Verdict     `json:"verdict"`
	Items     []RowItem   `json:"items"` // that are in the row, or were
	Others    []string    `json:"others"`
	Cells     []OwnedCell `json:"cells"`
	Unknown   []string    `json:"unknown"` // what could not be looked at, and why
}

// RowItem is an item that a guard of the row names.
type RowItem struct {
	Table   string          `json:"table"`
	Key     json.RawMessage `json:"key,omitempty"` // only with data
	KeyHash string          `json:"key_hash"`
	Guard   change.Version  `json:"guard,omitempty"`   // version of the item in the row; 0: the row does not hold it
	Deleted change.Version  `json:"deleted,omitempty"` // version at which the item was taken out of the row
	Verdict Verdict         `json:"verdict"`
	// ByKey is set where the row has nothing of the item, and the row's key names it: no other item
	// of the table can be in the row.
	ByKey  bool `json:"by_key,omitempty"`
	Absent bool `json:"absent,omitempty"` // the table has no such item
	// Back is the item that the cells turn back into, only with data; Attributes are its
	// attributes.
	Back       json.RawMessage `json:"back,omitempty"`
	Attributes []Attribute     `json:"attributes,omitempty"`
	NoWayBack  string          `json:"no_way_back,omitempty"` // why the cells do not show the item, or not all of it
}

// OwnedCell is a cell of a row with its owner.
type OwnedCell struct {
	Family    string         `json:"family"`
	Qualifier string         `json:"qualifier"`
	Version   change.Version `json:"version"`
	Time      time.Time      `json:"time"`
	Bytes     int            `json:"bytes"`
	Value     string         `json:"value,omitempty"` // only with data
	Owner     string         `json:"owner"`
	Item      int            `json:"item"` // index in Items of the one whose it is, or may be; -1 without one
	Why       string         `json:"why,omitempty"`
}

// The owners of a cell.
const (
	OwnedByItem    = "item"
	OwnedMaybe     = "unknown" // its column does not show to which of the items it belongs
	OwnedKept      = "kept"    // it may outlive its item
	OwnedByOther   = "other"   // another pipeline's guards are in the row
	OwnedByNobody  = "foreign" // no guard of the row can own it
	OwnedBySealed  = "sealed"  // a guard of the row is sealed with a secret that is not known here
	OwnedByAnother = "table"   // of a table of this pipeline that is not configured
)
