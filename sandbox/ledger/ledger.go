// Package ledger records every change that the sandbox committed, and checks whether a consumer
// delivered exactly those changes: once each, in order per item.
package ledger

import (
	"hash/crc32"
	"sort"
	"sync"

	"github.com/tailrace-cdc/replicator/sandbox/sequence"
)

// Commit is one committed change as the stream engine reports it.
type Commit struct {
	Table  string
	Item   []byte // canonical item key
	Op     string // INSERT MODIFY REMOVE
	TTL    bool   // deleted by time to live
	Shard  string // "" while the table's stream is disabled
	Seq    uint64 // position of the sequence number; undefined without Shard
	Images uint64 // HashImages of the change's new and old image
}

// Change is one line of the ledger.
type Change struct {
	Table  string `json:"table"`
	Item   string `json:"item"`
	Count  uint32 `json:"count"` // number among the changes of its item, from 1
	Op     string `json:"op"`
	TTL    bool   `json:"ttl,omitempty"`
	Shard  string `json:"shard,omitempty"` // empty: committed while the stream was disabled
	Seq    string `json:"seq,omitempty"`
	Images uint64 `json:"images,string"`
}

// Ledger has the changes of all tables. It is safe for concurrent use. The changes of one item, and
// of one shard, must be recorded in order.
type Ledger struct {
	mu      sync.Mutex
	numbers sequence.Numbers
	tables  map[string]*book
}

// book has the changes of one table. Items and shards are numbered in the order in which they first
// appear.
type book struct {
	items   map[string]uint32 // item key → number
	keys    []string          // item number → key
	counts  []uint32          // item number → changes so far
	shards  map[string]uint32 // shard id → number; "", for a disabled stream, is 0
	names   []string          // shard number → id
	byShard [][]uint32        // shard number → its lines, by sequence number
	lines   []line            // in the order of the commits
}

// newBook returns the book of a table without changes.
func newBook() *book {
	return &book{items: map[string]uint32{}, shards: map[string]uint32{"": 0}, names: []string{""},
		byShard: [][]uint32{nil}}
}

// line is one change. item and shard are numbers in the book.
type line struct {
	seq, images        uint64
	item, count, shard uint32
	op                 byte
	ttl                bool
}

// New returns an empty ledger with the sequence numbers of its stream engine.
func New(numbers sequence.Numbers) *Ledger {
	return &Ledger{numbers: numbers, tables: map[string]*book{}}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// HashImages returns the fingerprint of a change's images: of their JSON as the stream carries it,
// nil for an absent image. It consists of two checksums, which is fast and distinguishes the images
// of one item well enough.
func HashImages(newImage, oldImage []byte) uint64 {
	a := crc32.Update(crc32.Checksum(newImage, castagnoli)+1, castagnoli, oldImage)
	b := crc32.Update(crc32.ChecksumIEEE(newImage)+1, crc32.IEEETable, oldImage)
	return uint64(a)<<32 | uint64(b)
}

// Record adds a committed change.
func (l *Ledger) Record(c Commit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.tables[c.Table]
	if b == nil {
		b = newBook()
		l.tables[c.Table] = b
	}
	b.add(c)
}

// add adds a change.
func (b *book) add(c Commit) {
	item, shard := b.item(c.Item), b.shard(c.Shard)
	b.counts[item]++
	b.byShard[shard] = append(b.byShard[shard], uint32(len(b.lines)))
	b.lines = append(b.lines, line{
		seq: c.Seq, images: c.Images, item: item, count: b.counts[item], shard: shard, op: c.Op[0], ttl: c.TTL,
	})
}

// item returns the number of an item, a new one for a new key.
func (b *book) item(key []byte) uint32 {
	if at, ok := b.items[string(key)]; ok {
		return at
	}
	at, k := uint32(len(b.keys)), string(key)
	b.items[k] = at
	b.keys, b.counts = append(b.keys, k), append(b.counts, 0)
	return at
}

// shard returns the number of a shard, a new one for a new id.
func (b *book) shard(name string) uint32 {
	if at, ok := b.shards[name]; ok {
		return at
	}
	at := uint32(len(b.names))
	b.shards[name] = at
	b.names, b.byShard = append(b.names, name), append(b.byShard, nil)
	return at
}

// find returns the line of the change at a sequence position of a shard, or -1.
func (b *book) find(shard string, seq uint64) int {
	at, ok := b.shards[shard]
	if !ok || at == 0 {
		return -1
	}
	lines := b.byShard[at]
	i := sort.Search(len(lines), func(i int) bool { return b.lines[lines[i]].seq >= seq })
	if i == len(lines) || b.lines[lines[i]].seq != seq {
		return -1
	}
	return int(lines[i])
}

// change returns a line as callers see it.
func (l *Ledger) change(table string, b *book, ln line) Change {
	c := Change{
		Table: table, Item: b.keys[ln.item], Count: ln.count, Op: opName(ln.op), TTL: ln.ttl,
		Shard: b.names[ln.shard], Images: ln.images,
	}
	if ln.shard != 0 {
		c.Seq = l.numbers.Text(ln.seq)
	}
	return c
}

// opName returns the operation of which a line has the first letter.
func opName(op byte) string {
	switch op {
	case 'I':
		return "INSERT"
	case 'M':
		return "MODIFY"
	}
	return "REMOVE"
}

// Changes calls f with each change of a table in the order of the commits, until f returns false.
// It holds the ledger's lock: f must not call the ledger.
func (l *Ledger) Changes(table string, f func(Change) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.tables[table]
	if b == nil {
		return
	}
	for _, ln := range b.lines {
		if !f(l.change(table, b, ln)) {
			return
		}
	}
}

// Tables returns the names of the tables that have changes, sorted.
func (l *Ledger) Tables() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := make([]string, 0, len(l.tables))
	for name := range l.tables {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Count returns how many changes of a table were committed, and how many of them while its stream
// was enabled.
func (l *Ledger) Count(table string) (all, streamed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.tables[table]
	if b == nil {
		return 0, 0
	}
	return len(b.lines), len(b.lines) - len(b.byShard[0])
}
