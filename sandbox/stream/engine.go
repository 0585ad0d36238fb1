// Package stream is the sandbox's DynamoDB Streams: it turns committed changes into
// records on shards, keeps them for 24 hours of its clock, and answers the four
// operations of the streams API as the service does, or as badly as it was told to.
//
// A table's key space is cut into partitions by key hash; each has one open shard.
// Records are encoded once, when they are committed, and served by copying.
package stream

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/ledger"
	"github.com/tailrace-cdc/replicator/sandbox/sequence"
)

// Change is one committed change of one item. The engine keeps none of its slices.
type Change struct {
	Table          string
	Op             string // INSERT MODIFY REMOVE
	Keys, New, Old []byte // DynamoDB JSON objects; New and Old are nil when absent
	PartitionKey   []byte // bytes that are hashed to a partition
	ItemKey        []byte // canonical key of the item, for the ledger
	SizeBytes      int
	TTL            bool // deleted by the time-to-live sweep: the record gets a userIdentity
}

// Options configures an engine. The zero value is a good sandbox.
type Options struct {
	Clock      *clock.Clock   // nil: the machine's
	Ledger     *ledger.Ledger // nil: no ledger is kept
	Region     string         // default us-east-1
	Account    string         // default 000000000000
	Seed       uint64
	Partitions int              // of a new stream; 0: as many as its table has, see KeySpace
	Retention  time.Duration    // default 24 h
	Linger     time.Duration    // how long a wholly trimmed shard stays listed; default 4 h
	Numbers    sequence.Numbers // default: 21 digits, 22 after some thousand records
}

// Numbers are the sequence numbers that an engine with this seed uses by default; a
// ledger must be made with the same.
func Numbers(seed uint64) sequence.Numbers { return sequence.New(21, 2000+mix(seed)%20000) }

// Engine holds the streams of all tables. It is safe for concurrent use.
type Engine struct {
	o      Options
	faults *Faults
	last   atomic.Uint64 // position of the newest sequence number
	lastMs atomic.Int64  // newest creation time in a shard id
	chains atomic.Uint64 // chains of iterators begun
	served atomic.Uint64 // records returned by GetRecords
	spares spares

	mu      sync.RWMutex
	tables  map[string]*tableState
	streams []*stream          // oldest first
	byARN   map[string]*stream // the same

	rotations map[string]*rotation // by table
}

type tableState struct {
	keySchema  []byte
	partitions int
	current    *stream // newest stream, which may be off; nil if there never was one
}

// New returns an engine without tables.
func New(o Options) *Engine {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	o.Region = cmp.Or(o.Region, "us-east-1")
	o.Account = cmp.Or(o.Account, "000000000000")
	o.Retention = cmp.Or(o.Retention, 24*time.Hour)
	o.Linger = cmp.Or(o.Linger, 4*time.Hour)
	o.Numbers = cmp.Or(o.Numbers, Numbers(o.Seed))
	return &Engine{
		o: o, faults: newFaults(o.Clock),
		tables: map[string]*tableState{}, byARN: map[string]*stream{}, rotations: map[string]*rotation{},
	}
}

// Faults returns the faults that can be injected into this engine; all are off at first.
func (e *Engine) Faults() *Faults { return e.faults }

// Served returns how many records GetRecords has returned so far.
func (e *Engine) Served() uint64 { return e.served.Load() }

// Clock returns the clock that the engine lives by.
func (e *Engine) Clock() *clock.Clock { return e.o.Clock }

// KeySpace tells the engine a table's key schema, as the JSON array that DescribeStream shows, and how many partitions
// the table has: a new stream of it gets a shard for each.
func (e *Engine) KeySpace(table string, schema []byte, partitions int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.table(table)
	t.keySchema, t.partitions = schema, partitions
}

// partitions returns how many shards a new stream of a table has. The caller holds the engine's lock.
func (e *Engine) partitions(table string) int {
	return cmp.Or(e.o.Partitions, e.table(table).partitions, 4)
}

func (e *Engine) table(name string) *tableState {
	t := e.tables[name]
	if t == nil {
		t = &tableState{}
		e.tables[name] = t
	}
	return t
}

// Enable opens a new stream with a new ARN for a table. A stream that is already
// enabled is closed first. view is a StreamViewType.
func (e *Engine) Enable(table, view string) (arn, label string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.table(table)
	if t.current != nil {
		e.closeStream(t.current)
	}
	s := e.newStream(table, view, t.keySchema)
	t.current = s
	return s.arn, s.label
}

// Disable closes every open shard of a table's stream; they stay readable.
func (e *Engine) Disable(table string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.tables[table]; t != nil && t.current != nil {
		e.closeStream(t.current)
	}
}

// Drop is Disable for a table that is deleted: a later table of that name has no
// memory of it, while the stream stays readable under its ARN.
func (e *Engine) Drop(table string) {
	e.Disable(table)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.tables, table)
}

// Describe returns a table's newest stream. arn is empty if there never was one;
// enabled says whether it takes records now.
func (e *Engine) Describe(table string) (arn, label, view string, enabled bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	t := e.tables[table]
	if t == nil || t.current == nil {
		return "", "", "", false
	}
	s := t.current
	return s.arn, s.label, s.view, s.enabled()
}

// Commit puts changes on their shards and in the ledger. The caller holds whatever
// orders the changes of an item, and calls in that order. When the table's stream is
// off only the ledger counts.
func (e *Engine) Commit(cs ...Change) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for i := range cs {
		e.commit(&cs[i])
	}
}

func (e *Engine) commit(c *Change) {
	if t := e.tables[c.Table]; t != nil && t.current != nil && t.current.enabled() {
		e.append(t.current, c)
		return
	}
	e.enter(c, "", 0)
}

// enter puts a change in the ledger. A shard's changes are entered under its lock, so
// that the ledger sees them in order.
func (e *Engine) enter(c *Change, shard string, seq uint64) {
	if e.o.Ledger == nil {
		return
	}
	e.o.Ledger.Record(ledger.Commit{
		Table: c.Table, Item: c.ItemKey, Op: c.Op, TTL: c.TTL, Shard: shard, Seq: seq,
		Images: ledger.HashImages(c.New, c.Old),
	})
}

// now is the time that records and shards get: the sandbox's clock.
func (e *Engine) now() time.Time { return e.o.Clock.Now() }

// nextSeq draws a position; gaps between neighbours differ and repeat with the seed.
func (e *Engine) nextSeq() uint64 {
	for {
		last := e.last.Load()
		next := last + 1 + mix(e.o.Seed^last)%9
		if e.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// mix scrambles a number (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
