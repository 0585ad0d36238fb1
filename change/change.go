package change

// Op is what happened to the item.
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

// Feed names a source of changes that yields them in order and can resume: a shard of a stream.
type Feed struct {
	Stream string `json:"stream"` // stream ARN
	Shard  string `json:"shard"`
}

// Position is where the reading of a feed goes on. The zero Position is the trim horizon: the
// oldest record.
type Position struct {
	After SequenceNumber `json:"after,omitempty"` // the last record that was read
	At    Millis         `json:"at,omitempty"`    // start time; counts only while After is empty
}

// Record is one stream record inside a page. The byte slices alias the page's body; nothing is
// decoded.
type Record struct {
	Raw            []byte // the whole record, a JSON object
	Keys           []byte // JSON objects in DynamoDB's typed form; nil when absent
	New            []byte
	Old            []byte
	SequenceNumber []byte // decimal digits, 21 to 40 of them
	EventID        []byte
	Op             Op
	Created        Millis  // ApproximateCreationDateTime; the service rounds it down to seconds
	Size           int64   // SizeBytes
	TTL            bool    // deleted by DynamoDB's TTL: userIdentity is the service itself
	Version        Version // see Clock
	KeyHash        uint64
}

// Page is what one read of a feed returned. From and ClockFrom are the feed's position and clock
// before the page, To and Clock those after it; they go into the log together with the records
// (Rule 2).
type Page struct {
	Feed      Feed
	From, To  Position
	ClockFrom Version
	Clock     Version
	Done      bool   // the feed ends with this page
	Date      Millis // of the read: what was committed some seconds before it was visible
	Records   []Record
	Bytes     int // memory that this page holds

	Heartbeats []Heartbeat // that were among the records, and are not in Records; see package source/heartbeat
}

// Newest returns when the newest record of the page was created, heartbeats included; 0 for an
// empty page.
func (p *Page) Newest() (newest Millis) {
	if n := len(p.Records); n > 0 {
		newest = p.Records[n-1].Created
	}
	if n := len(p.Heartbeats); n > 0 {
		newest = max(newest, p.Heartbeats[n-1].Created)
	}
	return newest
}

// Heartbeat is a record of an item that the replicator itself has written.
type Heartbeat struct {
	Key     string // partition key: text, number or base64
	Created Millis
}

// Change is one change as it comes out of the log. The byte slices alias the frame they were read
// from.
type Change struct {
	Op             Op
	TTL            bool
	Version        Version // strictly increasing per item
	Created        Millis
	SequenceNumber SequenceNumber
	Feed           Feed
	KeyHash        uint64
	Raw            []byte // the whole record
	Keys           []byte
	New            []byte
	Old            []byte
}

// Clock is the hybrid clock of a feed, which assigns versions. A version is the record's creation
// time, or one more than the version before where that is not greater: creation times have whole
// seconds, and an item may change a thousand times in one of them.
type Clock Version

// Life is what a clock must know of its pipeline's life where records are read that are older than
// the life. Only those created since After get versions above Floor, and only these are applied to
// the rows of the earlier lives; the rest of the table is resynced. The zero Life changes nothing.
type Life struct {
	Floor Version
	After Millis
}

// LowestRead returns the lowest version that copies and resyncs give an item in a life with a
// floor.
//
// Rule 5: it is above every version of earlier lives, and below every change of this one, the first
// of each shard included. Copies take it for as long as the floor is ahead of the time.
func LowestRead(floor Version) Version { return floor + 1 }

// Applies reports whether the change with a version belongs to the life.
func (l Life) Applies(v Version) bool { return l.After == 0 || v > LowestRead(l.Floor) }

// NextIn is Next in a life. Once a record belongs to the life, all later ones of the feed do,
// whatever their time.
func (c *Clock) NextIn(l Life, created Millis) Version {
	if l.After > 0 && created >= l.After {
		*c = max(*c, Clock(LowestRead(l.Floor)))
	}
	return c.Next(created)
}

// Next returns the version of a record created at a time, and advances the clock.
//
// Rule 5: versions grow along a feed; they are assigned once, before the log, and never again.
func (c *Clock) Next(created Millis) Version {
	second := Version(created - created%1000)
	*c = Clock(max(Version(*c)+1, second))
	return Version(*c)
}
