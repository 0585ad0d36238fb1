// Package change is the model of one change of one DynamoDB item, and its wire form.
//
// It holds what every other package speaks about: the records of a raw GetRecords page, found by a lazy
// scanner that decodes nothing; the decoded attribute values of an image; canonical keys; the position
// and the page of a feed. It imports the standard library only and knows neither AWS nor NATS nor Bigtable.
package change

// Op says what happened to the item.
type Op byte

// The three event names of a stream record.
const (
	Insert Op = 'I'
	Modify Op = 'M'
	Remove Op = 'R'
)

// String returns DynamoDB's event name.
func (o Op) String() string {
	switch o {
	case Insert:
		return "INSERT"
	case Modify:
		return "MODIFY"
	case Remove:
		return "REMOVE"
	}
	return "UNKNOWN"
}

// Feed names anything that yields changes in order and can resume: here a shard of a stream.
type Feed struct {
	Stream string `json:"stream"` // stream ARN
	Shard  string `json:"shard"`
}

// Position is where a feed goes on. The zero Position is the trim horizon: the oldest record there is.
type Position struct {
	After SequenceNumber `json:"after,omitempty"` // sequence number of the last record read
	At    Millis         `json:"at,omitempty"`    // unix ms; counts only while After is empty
}

// Record is one stream record inside a page. The byte slices alias the page's body; nothing is decoded.
type Record struct {
	Raw            []byte // the whole record, a JSON object
	Keys           []byte // JSON objects in DynamoDB's typed form; nil when absent
	New            []byte
	Old            []byte
	SequenceNumber []byte // decimal digits, 21 to 40 of them
	EventID        []byte
	Op             Op
	Created        Millis  // ApproximateCreationDateTime, unix ms (the service rounds down to seconds)
	Size           int64   // SizeBytes
	TTL            bool    // deleted by DynamoDB's TTL: userIdentity is the service itself
	Version        Version // ms; see Clock
	KeyHash        uint64
}

// Page is what one read of a feed returned. From and ClockFrom are the feed's position and clock before the
// page, To and Clock those after it; they go into the log together with the records (Rule 2).
type Page struct {
	Feed      Feed
	From, To  Position
	ClockFrom Version
	Clock     Version
	Done      bool   // the feed ends with this page
	Date      Millis // unix ms on the service's clock: everything committed some seconds before it was visible
	Records   []Record
	Bytes     int // of memory that this page holds
}

// Change is one change as it comes out of the log. The byte slices alias the frame they were read from.
type Change struct {
	Op             Op
	TTL            bool
	Version        Version // ms, strictly increasing per item
	Created        Millis  // unix ms
	SequenceNumber SequenceNumber
	Feed           Feed
	KeyHash        uint64
	Raw            []byte // the whole record
	Keys           []byte
	New            []byte
	Old            []byte
}

// Clock is the hybrid clock of a feed: creation time where it can, one more than before where it must.
// DynamoDB's creation time has whole seconds while an item may change a thousand times in one of them.
type Clock Version

// Next returns the version of a record created at that unix ms, and advances the clock.
//
// Rule 5: versions grow along a feed; they are assigned once, before the log, and never again.
func (c *Clock) Next(created Millis) Version {
	second := Version(created - created%1000)
	*c = Clock(max(Version(*c)+1, second))
	return Version(*c)
}
