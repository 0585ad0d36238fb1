package stream

import (
	"hash/fnv"
	"sort"

	"github.com/tailrace-cdc/replicator/sandbox/ledger"
)

// Change is one committed change of one item. The engine copies what it keeps of the slices.
type Change struct {
	Table          string
	Op             string // INSERT MODIFY REMOVE
	Keys, New, Old []byte // DynamoDB JSON objects; New and Old are nil when absent
	PartitionKey   []byte // bytes that are hashed to a partition
	ItemKey        []byte // canonical key of the item, for the ledger
	SizeBytes      int
	TTL            bool // deleted by the time-to-live sweep: the record gets a userIdentity
}

// Commit appends changes to their shards and to the ledger. The caller holds the lock that orders
// the changes of an item, and commits them in that order. While the table's stream is disabled,
// changes go to the ledger alone.
func (e *Engine) Commit(cs ...Change) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for i := range cs {
		e.commit(&cs[i])
	}
}

// commit is Commit for one change. The caller holds the engine's lock.
func (e *Engine) commit(c *Change) {
	if t := e.tables[c.Table]; t != nil && t.current != nil && t.current.enabled() {
		e.append(t.current, c)
		return
	}
	e.recordInLedger(c, "", 0)
}

// recordInLedger adds a change to the ledger, if one is kept. A shard's changes are added under the
// shard's lock, so that the ledger gets them in order. shard is "" while the stream is disabled.
func (e *Engine) recordInLedger(c *Change, shard string, seq uint64) {
	if e.o.Ledger == nil {
		return
	}
	e.o.Ledger.Record(ledger.Commit{
		Table: c.Table, Item: c.ItemKey, Op: c.Op, TTL: c.TTL, Shard: shard, Seq: seq,
		Images: ledger.HashImages(c.New, c.Old),
	})
}

// append adds a change to the shard of its partition, and to the ledger.
func (e *Engine) append(s *stream, c *Change) {
	hash := hashKey(c.PartitionKey)
	at := sort.Search(len(s.parts), func(i int) bool { return s.parts[i].last >= hash })
	sh := s.parts[at].shard
	sh.mu.Lock()
	defer sh.mu.Unlock()
	seq := e.nextSeq()
	sh.append(e, s, c, seq)
	e.recordInLedger(c, sh.id, seq)
}

// hashKey returns the place of a partition key in the key space.
func hashKey(key []byte) uint64 {
	h := fnv.New64a()
	h.Write(key)
	return mix(h.Sum64())
}
