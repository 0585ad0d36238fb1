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

// Options configures an engine. The zero value of each field is a default.
type Options struct {
	Clock      *clock.Clock     // nil: the machine's
	Ledger     *ledger.Ledger   // nil: no ledger is kept
	Region     string           // default us-east-1
	Account    string           // default 000000000000
	Seed       uint64           // of shard ids, event ids and the gaps between sequence numbers
	Partitions int              // of a new stream; 0: as many as its table has, see KeySpace
	Retention  time.Duration    // age at which records are trimmed; default 24 h
	Linger     time.Duration    // how long after its records' retention a closed shard is listed; default 4 h
	Numbers    sequence.Numbers // default: 21 digits, 22 after some thousand records
}

// Engine holds the streams of all tables. It is safe for concurrent use.
type Engine struct {
	o       Options
	faults  *Faults
	last    atomic.Uint64 // position of the newest sequence number
	lastMs  atomic.Int64  // newest creation time in a shard id
	chains  atomic.Uint64 // chains of iterators begun
	served  atomic.Uint64 // records returned by GetRecords
	buffers replyBuffers

	mu      sync.RWMutex
	tables  map[string]*tableState
	streams []*stream          // oldest first
	byARN   map[string]*stream // the same streams

	rotations map[string]*rotation // by table; "" is all tables
}

// tableState is the engine's state of one table.
type tableState struct {
	keySchema  []byte
	partitions int
	current    *stream // the newest stream, enabled or not; nil before the first
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

// Clock returns the clock of records, retention and iterators.
func (e *Engine) Clock() *clock.Clock { return e.o.Clock }

// KeySpace sets a table's key schema, as the JSON array that DescribeStream shows, and its number
// of partitions: a new stream gets one shard for each.
func (e *Engine) KeySpace(table string, schema []byte, partitions int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.table(table)
	t.keySchema, t.partitions = schema, partitions
}

// partitions returns how many shards a new stream of a table gets. The caller holds the engine's
// lock.
func (e *Engine) partitions(table string) int {
	return cmp.Or(e.o.Partitions, e.table(table).partitions, 4)
}

// table returns a table's state, and adds it if there is none. The caller holds the engine's lock.
func (e *Engine) table(name string) *tableState {
	t := e.tables[name]
	if t == nil {
		t = &tableState{}
		e.tables[name] = t
	}
	return t
}

// Enable opens a new stream with a new ARN for a table, and closes the one that is enabled. view is
// a StreamViewType.
func (e *Engine) Enable(table, view string) (arn, label string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.table(table)
	if t.current != nil {
		e.closeStream(t.current)
	}
	s := e.newStream(table, view, t.keySchema, e.partitions(table))
	t.current = s
	return s.arn, s.label
}

// Disable closes every open shard of a table's stream. The shards stay readable.
func (e *Engine) Disable(table string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.tables[table]; t != nil && t.current != nil {
		e.closeStream(t.current)
	}
}

// Drop is Disable for a table that is deleted: a later table of that name begins without a stream,
// while the old stream stays readable under its ARN.
func (e *Engine) Drop(table string) {
	e.Disable(table)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.tables, table)
}

// Describe returns a table's newest stream. arn is empty before the first one; enabled reports
// whether the stream takes records now.
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
