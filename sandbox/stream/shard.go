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
	end      uint64 // ending sequence number of a closed shard
	closedAt time.Time
	segments []*segment
	trimmed  uint64 // newest sequence number that was trimmed; 0 = none
	count    int    // records held
}

// segment is a piece of a shard's ring: records as they go over the wire, each followed
// by a comma. A segment's bytes are never moved, so that pages are copied without lock.
type segment struct {
	buf []byte
	idx []entry
}

type entry struct {
	seq     uint64
	created int64  // unix seconds
	off     uint32 // of the record's first byte
	end     uint32 // past its comma
	size    uint32 // SizeBytes
}

const (
	minSegment = 2 << 10
	maxSegment = 1 << 20
)

// append encodes a change and keeps it. The caller holds the shard's lock.
func (sh *shard) append(e *Engine, s *stream, c *Change, seq uint64) {
	skew, format := e.faults.recordTime()
	now := e.now().Add(skew)
	seg := sh.room(recordBytes(c))
	off := len(seg.buf)
	seg.buf = appendRecord(seg.buf, e, s, c, seq, stamp{now.Unix(), format})
	seg.idx = append(seg.idx, entry{
		seq: seq, created: now.Unix(), off: uint32(off), end: uint32(len(seg.buf)), size: uint32(max(c.SizeBytes, 1)),
	})
	sh.count++
}

// room returns the segment that takes n more bytes. Segments double up to 1 MiB, so
// that ten thousand quiet shards are cheap.
func (sh *shard) room(n int) *segment {
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

// seal gives back what a closed shard's last segment will not need.
func (sh *shard) seal() {
	if k := len(sh.segments); k > 0 {
		seg := sh.segments[k-1]
		sh.segments[k-1] = &segment{buf: append(make([]byte, 0, len(seg.buf)), seg.buf...), idx: seg.idx}
	}
}

// trim removes the records created before t and returns how many.
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

// wholly reports whether the shard is closed and had all its records trimmed.
func (sh *shard) wholly() bool { return sh.closed && sh.count == 0 && sh.trimmed > 0 }

// run is a piece of a segment that goes into a page.
type run []byte

// page collects records with positions ≥ pos: at most limit of them, and at most
// maxBytes of SizeBytes unless the first alone is larger. next is the position after
// the last one; drained says that the shard is closed and holds nothing past it.
func (sh *shard) page(pos uint64, limit, maxBytes int) (runs []run, n int, next uint64, drained bool) {
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
			runs = append(runs, seg.buf[seg.idx[first].off:seg.idx[i-1].end:seg.idx[i-1].end])
		}
		if i < len(seg.idx) {
			return runs, n, next, false
		}
	}
	return runs, n, next, sh.closed
}

// oldest returns the position of the oldest record held, or of the shard's present end.
func (sh *shard) oldest() uint64 {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	if len(sh.segments) > 0 {
		return sh.segments[0].idx[0].seq
	}
	return max(sh.first, sh.trimmed+1)
}

// since returns the position of the first record created at second t or later, or of
// the shard's present end.
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

// tip is the position after the newest record.
func (sh *shard) tip() uint64 { return sh.since(math.MaxInt64) }
