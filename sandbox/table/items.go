package table

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/google/btree"

	"github.com/tailrace-cdc/replicator/dynamodb/attr"
)

// Record is a stored item: its key, its JSON in normal form, and its size as the service counts it.
// A record is never changed, only replaced.
type Record struct {
	Key  Key
	JSON []byte
	Size int
}

// Item returns the record's attributes; the caller owns them.
func (r *Record) Item() attr.Map { return attr.Stored(r.JSON) }

// NewRecord returns the record of an item in normal form.
func NewRecord(key Key, item attr.Map) *Record {
	size := item.Size()
	json := item.AppendJSON(make([]byte, 0, size+size/4+16*len(item)+2))
	if cap(json)-len(json) > len(json)/16+32 {
		json = append(make([]byte, 0, len(json)), json...)
	}
	return &Record{Key: key, JSON: json, Size: size}
}

// Items has the items of a table in key order. Callers hold the table's lock.
type Items struct {
	tree    *btree.BTreeG[*Record] // by key
	bytes   int64                  // total size of the items
	ttl     string                 // attribute with the time of expiry; "" while time to live is disabled
	expires *btree.BTreeG[expiry]  // by time; nil while time to live is disabled
}

// expiry is an entry of the index of times to live.
type expiry struct {
	at  int64 // epoch seconds
	key Key
}

// degree is the degree of the B-trees.
const degree = 32

// NewItems returns an empty set of items.
func NewItems() *Items {
	return &Items{tree: btree.NewG(degree, func(a, b *Record) bool { return a.Key < b.Key })}
}

// Len returns the number of items.
func (t *Items) Len() int { return t.tree.Len() }

// Bytes returns the total size of the items.
func (t *Items) Bytes() int64 { return t.bytes }

// Get returns the record under a key, nil if there is none.
func (t *Items) Get(key Key) *Record {
	r, _ := t.tree.Get(&Record{Key: key})
	return r
}

// Put stores a record in place of old, which may be nil. item is the record's item.
func (t *Items) Put(old, r *Record, item attr.Map) {
	if old != nil {
		t.uncount(old)
	}
	t.bytes += int64(r.Size)
	t.tree.ReplaceOrInsert(r)
	if t.ttl != "" {
		t.indexExpiry(r.Key, item)
	}
}

// Delete removes a record.
func (t *Items) Delete(r *Record) {
	t.uncount(r)
	t.tree.Delete(r)
}

// uncount removes a record from the total size and from the index of times to live.
func (t *Items) uncount(r *Record) {
	t.bytes -= int64(r.Size)
	if t.ttl == "" {
		return
	}
	if at, ok := expiryOf(r.Item(), t.ttl); ok {
		t.expires.Delete(expiry{at, r.Key})
	}
}

// indexExpiry adds an item to the index of times to live, if it has one.
func (t *Items) indexExpiry(key Key, item attr.Map) {
	if at, ok := expiryOf(item, t.ttl); ok {
		t.expires.ReplaceOrInsert(expiry{at, key})
	}
}

// expiryOf returns an item's time of expiry in Unix seconds; false when the attribute is missing or
// not a number.
func expiryOf(item attr.Map, name string) (int64, bool) {
	v := item.Get(name)
	if v == nil || v.Kind != attr.N {
		return 0, false
	}
	whole, _, _ := strings.Cut(v.Str, ".")
	at, err := strconv.ParseInt(whole, 10, 64)
	return at, err == nil
}

// SetTTL sets the attribute with the time of expiry, and indexes all items by it; "" disables time
// to live.
func (t *Items) SetTTL(name string) {
	t.ttl, t.expires = name, nil
	if name == "" {
		return
	}
	t.expires = btree.NewG(degree, func(a, b expiry) bool {
		return a.at < b.at || a.at == b.at && a.key < b.key
	})
	t.tree.Ascend(func(r *Record) bool {
		t.indexExpiry(r.Key, r.Item())
		return true
	})
}

// tooOld is how long ago an item may have expired: like the service, the sandbox takes older times
// for mistakes.
const tooOld = 5 * 365 * 24 * time.Hour

// Expired returns the records that have expired at now.
func (t *Items) Expired(now time.Time) []*Record {
	if t.ttl == "" {
		return nil
	}
	var due []*Record
	from := expiry{at: now.Add(-tooOld).Unix()}
	t.expires.AscendGreaterOrEqual(from, func(e expiry) bool {
		if e.at > now.Unix() {
			return false
		}
		due = append(due, t.Get(e.key))
		return true
	})
	return due
}

// Ascend visits records in order, from the first key that is not below from, until visit returns
// false.
func (t *Items) Ascend(from Key, visit func(*Record) bool) {
	t.tree.AscendGreaterOrEqual(&Record{Key: from}, visit)
}

// Descend visits records in reverse order, from the last key that is not above from, until visit
// returns false.
func (t *Items) Descend(from Key, visit func(*Record) bool) {
	t.tree.DescendLessOrEqual(&Record{Key: from}, visit)
}

// Segment returns the bounds of one of total segments of a scan: keys from first on, below end. An
// empty end is no bound.
func Segment(segment, total int64) (first, end Key) {
	step := ^uint64(0)/uint64(total) + 1
	bound := func(n int64) Key {
		return Key(binary.BigEndian.AppendUint64(nil, uint64(n)*step))
	}
	if segment > 0 {
		first = bound(segment)
	}
	if segment < total-1 {
		end = bound(segment + 1)
	}
	return first, end
}
