package delegation

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// Format is the format of orders, beats and marks, and the highest that this build reads.
const Format = 1

// NewerFormatError is a value that a later program stored. Rule 11: a newer one is refused.
type NewerFormatError struct{ Have int }

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("the copy's order has format %d, this program reads up to %d: use the newer program",
		e.Have, Format)
}

// Order permits the workers of a distributed engine to write the items of one export. A table has
// one order at a time. The owner of the table's log stores it, after the log has decided it.
type Order struct {
	Format int `json:"format"` // Rule 11: everything stored carries a format number
	// Revision grows with each change, and begins at the time in ms: no two contents of a table's
	// orders have the same, even where the table was retired in between.
	Revision int64  `json:"revision"`
	ID       string `json:"id"`   // see ID; no two orders of a pipeline's table have the same
	Copy     string `json:"copy"` // id of the copy in the log
	Life     uint64 `json:"life"` // of the table's row; with another one the order is void

	Pipeline string `json:"pipeline"`
	Table    string `json:"table"`    // source table
	TableID  string `json:"table_id"` // DynamoDB's TableId
	Target   string `json:"target"`   // short name of the target table
	// Profile is the app profile of the writes; "": the instance's default.
	Profile string `json:"profile,omitempty"`
	// Tombstones is how long the target keeps tombstones: bigtable.Options.Tombstones.
	Tombstones time.Duration `json:"tombstones"`

	Export Export `json:"export"`
	// Copied are the files that were durable when the order was opened.
	Copied []Range `json:"copied,omitempty"`
	// Version of all items.
	Version change.Version `json:"version"`
	// First is set where no earlier life wrote rows of the table: transform.Resync.First.
	First bool `json:"first,omitempty"`
	// Mappings of all tables that write to the target, in the order in which they are compiled:
	// the class of a row depends on all of them. Table's own is one of them.
	Mappings []Mapping `json:"mappings"`
	// Heartbeats are the keys of the items that the replicator itself writes into the table.
	Heartbeats Heartbeats `json:"heartbeats,omitzero"`

	Opened change.Millis `json:"opened"`           // service clock
	Closed change.Millis `json:"closed,omitempty"` // service clock; 0: the order is open
	Reason CloseReason   `json:"reason,omitempty"` // why it was closed
}

// Export is what workers read.
type Export struct {
	URL    string        `json:"url"`
	Digest string        `json:"digest"` // of its list of files: export.Export.Digest
	Files  int           `json:"files"`
	Time   change.Millis `json:"time"` // of the state that it shows
	Items  int64         `json:"items"`
	Bytes  int64         `json:"bytes"`
}

// Range is a range of file numbers, both ends included.
type Range struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// Mapping is the mapping of one table, and what else its compiled program depends on.
type Mapping struct {
	Table   string           `json:"table"`
	Schema  change.KeySchema `json:"schema"`
	View    string           `json:"view,omitempty"`     // of the stream
	TTLAttr string           `json:"ttl_attr,omitempty"` // TTL attribute
	Hash    string           `json:"hash"`               // of the compiled program, in hexadecimal
	Kept    json.RawMessage  `json:"kept"`               // transform.Kept
}

// MappingOf returns the mapping of a compiled program.
func MappingOf(p *transform.Program) (Mapping, error) {
	kept, err := p.Keep()
	if err != nil {
		return Mapping{}, err
	}
	hash, of := p.Hash(), p.Table()
	return Mapping{
		Table: of.Source, Schema: of.Schema, View: of.View, TTLAttr: of.TTLAttr, Hash: hex.EncodeToString(hash[:]),
		Kept: kept,
	}, nil
}

// Heartbeats are the partition keys of a table's heartbeats: heartbeat.Keys.
type Heartbeats struct {
	Prefix string   `json:"prefix,omitempty"`
	List   []string `json:"list,omitempty"`
}

// CloseReason is why an order was closed.
type CloseReason string

// The reasons.
const (
	CloseDone     CloseReason = "done"     // every file has a mark
	CloseTakeback CloseReason = "takeback" // the daemon copies the rest
	CloseCancel   CloseReason = "cancel"   // an operator cancelled the copy
	ClosePause    CloseReason = "pause"    // the copy paused itself: a gap, refused items, an export too old
	CloseUnfit    CloseReason = "unfit"    // workers cannot copy with the table's mapping
)

// ID returns the id of the order of a copy that an entry of the log has delegated. The sequences of
// a later log of the table are higher, so no order has the id of an earlier one.
func ID(copied string, seq uint64) string { return copied + "." + strconv.FormatUint(seq, 10) }

// Encode returns the stored form of an order.
func (o Order) Encode() ([]byte, error) {
	o.Format = Format
	return json.Marshal(o)
}

// DecodeOrder reads the stored form of an order. Errors: *NewerFormatError.
func DecodeOrder(stored []byte) (*Order, error) {
	o := &Order{}
	if err := json.Unmarshal(stored, o); err != nil {
		return nil, fmt.Errorf("decode the copy's order: %w", err)
	}
	if o.Format > Format { // Rule 11
		return nil, fmt.Errorf("decode the copy's order: %w", &NewerFormatError{Have: o.Format})
	}
	return o, nil
}

// Open reports whether the order permits anything.
func (o *Order) Open() bool { return o != nil && o.Closed == 0 }

// Needs reports whether a file must be copied under the order.
func (o *Order) Needs(file int) bool {
	for _, r := range o.Copied {
		if r.First <= file && file <= r.Last {
			return false
		}
	}
	return file >= 0 && file < o.Export.Files
}

// Opening is what opening an order comes to.
type Opening string

// What opening an order comes to.
const (
	OpensNew    Opening = "opens"  // the order is to be stored
	IsOpen      Opening = "open"   // it is stored already
	WasClosed   Opening = "closed" // it was closed, which is for ever
	AnotherOpen Opening = "other"  // another order of this life is open, and must be closed first
)

// JudgeOpening decides what an owner may do to open the order want, where the table's row holds
// have, nil for none. An order that is to be stored replaces exactly the one that was judged, with
// the revision NextRevision.
func JudgeOpening(have, want *Order) Opening {
	switch {
	case have == nil:
		return OpensNew
	case have.ID == want.ID && have.Closed > 0:
		return WasClosed
	case have.ID == want.ID:
		return IsOpen
	case have.Open() && have.Life == want.Life:
		return AnotherOpen
	}
	return OpensNew
}

// NextRevision returns the revision of what replaces an order, nil for none, at a time.
func NextRevision(have *Order, now change.Millis) int64 {
	next := int64(now)
	if have != nil {
		next = max(next, have.Revision+1)
	}
	return max(next, 1)
}

// Closing returns the order that an owner stores to close order id, where the table's row holds
// have, nil for none; nil if it is closed already. It is stored also where the row has no order, or
// one of another id: an opening that was sent and not answered arrives later, and must then find
// another value than the one that it replaces.
func Closing(have *Order, id string, life uint64, reason CloseReason, now change.Millis) *Order {
	next := Order{ID: id, Life: life, Opened: now}
	if have != nil && have.ID == id {
		next = *have
	}
	if next.Closed > 0 {
		return nil
	}
	next.Revision = NextRevision(have, now)
	next.Closed, next.Reason = max(now, 1), reason
	return &next
}
