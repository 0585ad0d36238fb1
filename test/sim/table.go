package sim

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
)

// item is an item of the source table and all that ever happened to it.
type item struct {
	n       int
	sk      string
	keys    []byte // typed JSON
	hash    uint64
	commits []commit // the first one is that the item does not exist
	// reads are the highest versions that copies and resyncs have given each commit.
	reads map[int]change.Version
}

// noteRead notes that a commit was read, to be written at a version.
func (x *item) noteRead(commit int, v change.Version) { x.reads[commit] = max(x.reads[commit], v) }

// commit is what an item was from some moment on.
type commit struct {
	n     int
	at    change.Millis
	image []byte // typed JSON; nil: the item does not exist
	// rows is the projection: what a plain reader should see of the item, by row.
	rows map[string]string
}

// record is a stream record.
type record struct {
	n        int // numbers all records, and is the sequence number
	item     *item
	commit   int // index of the commit in its item
	shard    *shard
	created  change.Millis
	ahead    change.Version // so many records of items that nobody looks at came before it in its second
	old, new []byte

	version  change.Version // that it was given in the log; 0: none yet
	seq      uint64         // of the entry that holds it; 0: none
	checked  uint64         // the entry with which it was found durable
	lettered bool           // it is a dead letter, or was one
}

func (r *record) position() change.SequenceNumber {
	return change.SequenceNumber(fmt.Sprintf("1%020d", r.n))
}

func newItem(n int) *item {
	pk, sk := fmt.Sprint("p", n%2), fmt.Sprint("s", n)
	keys := []byte(fmt.Sprintf(`{"pk":{"S":%q},"sk":{"S":%q}}`, pk, sk))
	return &item{n: n, sk: sk, keys: keys, hash: change.HashKey(keys), commits: []commit{{}},
		reads: map[int]change.Version{}}
}

// newest returns the item as it is.
func (x *item) newest() *commit { return &x.commits[len(x.commits)-1] }

// write puts or deletes an item, and adds a record to its shard, if the stream is enabled.
func (w *World) write(x *item, at change.Millis, ahead change.Version) {
	w.writes++
	before := x.newest()
	c := commit{n: w.writes, at: at}
	if before.image == nil || !w.deleting && !w.one(4) {
		c.image = w.newImage(x, w.writes)
		c.rows = w.mapping.project(w, c.image)
	} else {
		c.rows = map[string]string{}
	}
	if c.image == nil && before.image == nil {
		return
	}
	x.commits = append(x.commits, c)
	sh := w.shardOf(x)
	if sh == nil {
		return
	}
	created := at - at%1000
	if w.one(8) { // the host has another clock
		created -= 1000
	}
	if n := len(sh.records); n > 0 {
		created = max(created, sh.records[n-1].created)
	}
	r := &record{
		n: len(w.records) + 1, item: x, commit: len(x.commits) - 1, shard: sh, created: created, ahead: ahead,
		old: before.image, new: c.image,
	}
	w.records = append(w.records, r)
	sh.records = append(sh.records, r)
	w.logf("write %d: item %d, commit %d in %s: %s", r.n, x.n, r.commit, sh.id, c.image)
}

// newImage returns an image that no other commit has. One attribute is there at times, and one is
// the place of the item.
func (w *World) newImage(x *item, n int) []byte {
	y := ""
	if w.choose(2) == 0 {
		y = fmt.Sprintf(`,"y":{"S":"y%d"}`, n)
	}
	site := w.choose(3)
	return []byte(fmt.Sprintf(`%s,"x":{"S":"x%d"}%s,"site":{"S":"w%d"}}`, x.keys[:len(x.keys)-1], n, y, site))
}

// change returns the change of a record, as it comes out of the log.
func (r *record) change(v change.Version) change.Change {
	c := change.Change{
		Op: change.Modify, Version: v, Created: r.created, SequenceNumber: r.position(),
		Feed: change.Feed{Stream: r.shard.stream, Shard: r.shard.id}, KeyHash: r.item.hash, Keys: r.item.keys,
		New: r.new, Old: r.old,
	}
	switch {
	case r.new == nil:
		c.Op = change.Remove
	case r.old == nil:
		c.Op = change.Insert
	}
	return c
}
