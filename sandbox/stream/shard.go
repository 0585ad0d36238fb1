package stream

import (
	"math"
	"sort"
	"sync"
	"time"
)

// shard is a sequence of records. Its identity is fixed; mu guards the rest.
type shard struct {
	id, parent string
	first      uint64 // starting sequence number
	created    time.Time

	mu       sync.RWMutex
	closed   bool
	end      uint64 // ending sequence number, once closed
	closedAt time.Time
	segments []*segment
	trimmed  uint64 // newest sequence number that was trimmed; 0: none
	count    int    // records in the segments
}

// segment is a part of a shard's records, encoded for the wire, each followed by a comma. A
// segment's bytes never move, so that pages are copied without a lock.
type segment struct {
	buf []byte
	idx []entry
}

// entry locates one record in a segment.
type entry struct {
	seq     uint64
	created int64  // unix seconds
	off     uint32 // of the record's first byte
	end     uint32 // past its comma
	size    uint32 // SizeBytes
}

// The capacities of segments, in bytes.
const (
	minSegment = 2 << 10
	maxSegment = 1 << 20
)

// append encodes a change and adds it. The caller holds the shard's lock.
func (sh *shard) append(e *Engine, s *stream, c *Change, seq uint64) {
	now, format := e.faults.recordTime(e.now(), mix(e.o.Seed+seq))
	seg := sh.segmentFor(recordBytes(c))
	off := len(seg.buf)
	seg.buf = appendRecord(seg.buf, e, s, c, seq, stamp{now.Unix(), format})
	seg.idx = append(seg.idx, entry{
		seq: seq, created: now.Unix(), off: uint32(off), end: uint32(len(seg.buf)), size: uint32(max(c.SizeBytes, 1)),
	})
	sh.count++
}

// segmentFor returns a segment with room for n more bytes. Segments double up to 1 MiB, so that ten
// thousand idle shards need little memory.
func (sh *shard) segmentFor(n int) *segment {
	size := minSegment
	if k := len(sh.segments); k > 0 {
		seg := sh.segments[k-1]
		if cap(seg.buf)-len(seg.buf) >= n {
			return seg
		}
		size = min(2*cap(seg.buf), maxSegment)
	}
	seg := &segment{buf: make([]byte, 0, max(size, n))}
	sh.segments = append(sh.segments, seg)
	return seg
}

// shrink frees the unused capacity of a closed shard's last segment.
func (sh *shard) shrink() {
	if k := len(sh.segments); k > 0 {
		seg := sh.segments[k-1]
		sh.segments[k-1] = &segment{buf: append(make([]byte, 0, len(seg.buf)), seg.buf...), idx: seg.idx}
	}
}

// trim removes the records created before t and returns their number.
func (sh *shard) trim(t time.Time) int {
	limit := t.Unix()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	before := sh.count
	for len(sh.segments) > 0 {
		seg := sh.segments[0]
		cut := 0
		for cut < len(seg.idx) && seg.idx[cut].created < limit {
			cut++
		}
		if cut == 0 {
			break
		}
		sh.trimmed = seg.idx[cut-1].seq
		sh.count -= cut
		if cut < len(seg.idx) {
			sh.segments[0] = &segment{buf: seg.buf, idx: seg.idx[cut:]}
			break
		}
		sh.segments[0] = nil
		sh.segments = sh.segments[1:]
	}
	return before - sh.count
}

// fullyTrimmed reports whether the shard is closed and all its records were trimmed. The caller
// holds the shard's lock.
func (sh *shard) fullyTrimmed() bool { return sh.closed && sh.count == 0 && sh.trimmed > 0 }

// span is the encoded records of one segment that go into a page.
type span []byte

// page returns the records with positions ≥ pos: at most limit of them, and at most maxBytes of
// SizeBytes unless the first alone is larger. next is the position after the last one; drained
// reports that the shard is closed and has no record past it.
func (sh *shard) page(pos uint64, limit, maxBytes int) (spans []span, n int, next uint64, drained bool) {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	next = pos
	at := sort.Search(len(sh.segments), func(i int) bool {
		idx := sh.segments[i].idx
		return idx[len(idx)-1].seq >= pos
	})
	bytes := 0
	for ; at < len(sh.segments); at++ {
		seg := sh.segments[at]
		i := sort.Search(len(seg.idx), func(i int) bool { return seg.idx[i].seq >= pos })
		first := i
		for ; i < len(seg.idx); i++ {
			size := int(seg.idx[i].size)
			if n == limit || n > 0 && bytes+size > maxBytes {
				break
			}
			n, bytes, next = n+1, bytes+size, seg.idx[i].seq+1
		}
		if i > first {
			spans = append(spans, seg.buf[seg.idx[first].off:seg.idx[i-1].end:seg.idx[i-1].end])
		}
		if i < len(seg.idx) {
			return spans, n, next, false
		}
	}
	return spans, n, next, sh.closed
}

// oldest returns the position of the oldest record, or of the shard's present end when it has none.
func (sh *shard) oldest() uint64 {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	if len(sh.segments) > 0 {
		return sh.segments[0].idx[0].seq
	}
	return max(sh.first, sh.trimmed+1)
}

// since returns the position of the first record created at second t or later, or of the shard's
// present end.
func (sh *shard) since(t int64) uint64 {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	next := max(sh.first, sh.trimmed+1)
	for _, seg := range sh.segments {
		if seg.idx[len(seg.idx)-1].created >= t {
			for _, en := range seg.idx {
				if en.created >= t {
					return en.seq
				}
			}
		}
		next = seg.idx[len(seg.idx)-1].seq + 1
	}
	return next
}

// tip returns the position after the newest record.
func (sh *shard) tip() uint64 { return sh.since(math.MaxInt64) }
