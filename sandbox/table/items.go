package table

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/google/btree"

	"github.com/tailrace-cdc/replicator/sandbox/attr"
)

// Record is a stored item: its key, its JSON in normal form, and its size as the
// service counts it. A record is never changed, only replaced.
type Record struct {
	Key  Key
	JSON []byte
	Size int
}

// Item reads the record's attributes; the caller owns what it gets.
func (r *Record) Item() attr.Map { return attr.Stored(r.JSON) }

// NewRecord makes a record of an item in normal form.
func NewRecord(key Key, item attr.Map) *Record {
	size := item.Size()
	json := item.AppendJSON(make([]byte, 0, size+size/4+16*len(item)+2))
	if cap(json)-len(json) > len(json)/16+32 {
		json = append(make([]byte, 0, len(json)), json...)
	}
	return &Record{Key: key, JSON: json, Size: size}
}

// Items are the items of a table in key order. The caller locks.
type Items struct {
	tree    *btree.BTreeG[*Record]
	bytes   int64
	ttl     string // attribute that holds the time of expiry, "" when off
	expires *btree.BTreeG[expiry]
}

type expiry struct {
	at  int64 // epoch seconds
	key Key
}

const degree = 32

// NewItems is an empty table.
func NewItems() *Items {
	return &Items{tree: btree.NewG(degree, func(a, b *Record) bool { return a.Key < b.Key })}
}

// Len is the number of items.
func (t *Items) Len() int { return t.tree.Len() }

// Bytes is the sum of the items' sizes.
func (t *Items) Bytes() int64 { return t.bytes }

// Get returns the record under a key, or nil.
func (t *Items) Get(key Key) *Record {
	r, _ := t.tree.Get(&Record{Key: key})
	return r
}

// Put stores a record in place of old, which may be nil. item is what the record holds.
func (t *Items) Put(old, r *Record, item attr.Map) {
	if old != nil {
		t.forget(old)
	}
	t.bytes += int64(r.Size)
	t.tree.ReplaceOrInsert(r)
	if t.ttl != "" {
		t.note(r.Key, item)
	}
}

// Delete takes a record out.
func (t *Items) Delete(r *Record) {
	t.forget(r)
	t.tree.Delete(r)
}

func (t *Items) forget(r *Record) {
	t.bytes -= int64(r.Size)
	if t.ttl == "" {
		return
	}
	if at, ok := expiryOf(r.Item(), t.ttl); ok {
		t.expires.Delete(expiry{at, r.Key})
	}
}

func (t *Items) note(key Key, item attr.Map) {
	if at, ok := expiryOf(item, t.ttl); ok {
		t.expires.ReplaceOrInsert(expiry{at, key})
	}
}

// expiryOf reads a time of expiry: a number, in seconds since 1970.
func expiryOf(item attr.Map, name string) (int64, bool) {
	v := item.Get(name)
	if v == nil || v.Kind != attr.N {
		return 0, false
	}
	whole, _, _ := strings.Cut(v.Str, ".")
	at, err := strconv.ParseInt(whole, 10, 64)
	return at, err == nil
}

// SetTTL says which attribute holds the time of expiry, "" for none.
func (t *Items) SetTTL(name string) {
	t.ttl, t.expires = name, nil
	if name == "" {
		return
	}
	t.expires = btree.NewG(degree, func(a, b expiry) bool {
		return a.at < b.at || a.at == b.at && a.key < b.key
	})
	t.tree.Ascend(func(r *Record) bool {
		t.note(r.Key, r.Item())
		return true
	})
}

// tooOld: what expired longer ago is taken for a mistake and left alone.
const tooOld = 5 * 365 * 24 * time.Hour

// Expired are the records whose time has come at now.
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

// Ascend visits records in order, beginning with the first whose key is not below
// from, until visit returns false.
func (t *Items) Ascend(from Key, visit func(*Record) bool) {
	t.tree.AscendGreaterOrEqual(&Record{Key: from}, visit)
}

// Descend visits records in reverse order, beginning with the last whose key is not
// above from.
func (t *Items) Descend(from Key, visit func(*Record) bool) {
	t.tree.DescendLessOrEqual(&Record{Key: from}, visit)
}

// Segment are the bounds of one of total segments of a scan: keys from first on, below
// end; end is "" when there is no bound.
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
