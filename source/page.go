package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/source/raw"
)

// Page is one raw page of a shard. Its records alias pooled memory, for which it has a lease of the
// source's budget. The consumer must release every page, empty ones too, exactly once, after the
// last record has been copied or written.
type Page struct {
	change.Page

	body    raw.Body
	lease   *PageLease
	skipped bool // all its records are older than the start time

	Asked, Answered time.Time // when the call was made, and had its reply
}

// Release gives the page's memory back. The records must not be used afterwards.
func (p *Page) Release() {
	p.body.Free()
	putRecords(p.Records)
	p.Records, p.Bytes = nil, 0
	p.lease.Release()
}

// Shrink gives back the page's records, which were copied, and keeps n bytes of memory for the copy
// until Release.
func (p *Page) Shrink(n int) {
	p.body.Free()
	putRecords(p.Records)
	p.Records, p.Bytes = nil, n
	if p.lease != nil {
		p.lease.Settle(int64(n))
	}
}

// reservation is the memory of one GetRecords reply: 1 MB by the service's count, in a pooled
// buffer, and the index of a thousand records. Other servers may send more, which overdraws the
// budget by the difference, once for each feed.
const reservation = 3 << 19

var recordPool sync.Pool

// smallPage is the number of records below which a page gets an index of its own size.
const smallPage = 64

func getRecords() []change.Record {
	if r, ok := recordPool.Get().(*[]change.Record); ok {
		return (*r)[:0]
	}
	return make([]change.Record, 0, raw.RecordsLimit)
}

func putRecords(r []change.Record) {
	if cap(r) >= raw.RecordsLimit {
		r = r[:0]
		recordPool.Put(&r)
	}
}

// scan finds the records in the body and indexes them: in a pooled slice, or in one of the right
// size if they are few. next is the iterator that follows, as raw JSON.
func (p *Page) scan() (next []byte, err error) {
	scratch := getRecords()
	recs, next, err := change.ScanPage(p.body.Bytes(), scratch)
	if err != nil {
		putRecords(scratch)
		return nil, &raw.MalformedError{Err: err}
	}
	if len(recs) < smallPage {
		p.Records = append([]change.Record(nil), recs...)
		putRecords(recs)
	} else {
		p.Records = recs
	}
	return next, nil
}

// countBytes sets Bytes to the memory that the page holds. A page without records gives up its
// memory.
func (p *Page) countBytes() {
	if len(p.Records) == 0 {
		p.body.Free()
		putRecords(p.Records)
		p.Records = nil
		return
	}
	p.Bytes = cap(p.body.Bytes()) + cap(p.Records)*int(unsafe.Sizeof(change.Record{}))
}

// stamper decodes keys for hashing. It is pooled, because there are thousands of readers.
type stamper struct {
	dec change.Decoder
	key []byte
}

var stampers = sync.Pool{New: func() any { return new(stamper) }}

// stampRecords gives every record its version and the hash of its canonical key, and returns the
// clock after them. A record that does not follow the one before it, has no creation time or has no
// valid key is an error, because its version could not be the right one. Heartbeats get no version:
// they move from the records to the page's Heartbeats.
//
// Rule 5: versions are assigned here, once, before the log, and never recomputed.
func (p *Page) stampRecords(start *Start, clock change.Version, last change.SequenceNumber) (change.Version, error) {
	c, recs, kept := change.Clock(clock), p.Records, 0
	st := stampers.Get().(*stamper)
	defer stampers.Put(st)
	defer st.dec.Reset()
	prev := []byte(last)
	for i := range recs {
		r := &recs[i]
		if !r.Follows(prev) {
			return clock, fmt.Errorf("record %s comes after %s", r.SequenceNumber, prev)
		}
		if prev = r.SequenceNumber; r.Created <= 0 {
			return clock, fmt.Errorf("record %s has no creation time", r.SequenceNumber)
		}
		st.dec.Reset()
		keys, err := st.dec.Image(r.Keys)
		if err == nil {
			st.key, err = start.Schema.Canonical(st.key[:0], keys)
		}
		if err != nil {
			return clock, fmt.Errorf("read key of record %s: %w", r.SequenceNumber, err)
		}
		if key, ours := start.heartbeats.Record(r, keys); ours {
			p.Heartbeats = append(p.Heartbeats, change.Heartbeat{Key: strings.Clone(key), Created: r.Created})
			continue
		}
		r.Version, r.KeyHash = c.NextIn(start.Life, r.Created), change.HashKey(st.key)
		if kept < i {
			recs[kept] = *r
		}
		kept++
	}
	p.Records = recs[:kept]
	return change.Version(c), nil
}

// unescape returns the text of a raw JSON string without its quotes.
func unescape(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	var text string
	if err := json.Unmarshal(slices.Concat([]byte{'"'}, raw, []byte{'"'}), &text); err != nil {
		return string(raw)
	}
	return text
}
