package resync

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/s2"
	"golang.org/x/sync/semaphore"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/protocol"
)

// batch is the result of one read: items of a part in typed JSON.
type batch struct {
	items [][]byte
	after string // position after the batch
	last  bool   // the last batch of its part

	version   change.Version // of the writes
	requested change.Millis  // the service's clock, not later than the reading
	proof     change.Millis  // every change up to it must be applied before the items are written
	at        time.Time      // this process's clock at the reading
	units     float64        // read capacity
}

// page is a batch in hand: packed until the stream has caught up with its reading.
type page struct {
	protocol.CopyPage // its Letters are set when it is complete

	version   change.Version
	requested change.Millis
	proof     change.Millis
	at        time.Time
	units     float64

	packed  []byte       // S2 of the items, each behind its length
	letters atomic.Int64 // items that became dead letters
}

// maxItem is the largest JSON of an item that a packed page may hold: 400 KB in the service's
// measure are less than this in any notation.
const maxItem = 8 << 20

// buffers are used to pack and unpack pages.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// pack copies a batch into a page. The items wait seconds for the stream, so they wait compressed.
func pack(b *batch, from string) *page {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	raw := (*buf)[:0]
	pg := &page{
		CopyPage: protocol.CopyPage{From: from, After: b.after, Last: b.last, Items: len(b.items)},
		version:  b.version, requested: b.requested, proof: b.proof, at: b.at, units: b.units,
	}
	for _, item := range b.items {
		raw = append(binary.AppendUvarint(raw, uint64(len(item))), item...)
		pg.Bytes += len(item)
	}
	*buf = raw
	room := buffers.Get().(*[]byte)
	defer buffers.Put(room)
	if worst := s2.MaxEncodedLen(len(raw)); cap(*room) < worst {
		*room = make([]byte, worst)
	}
	packed := s2.Encode((*room)[:cap(*room)], raw)
	pg.packed = append(make([]byte, 0, len(packed)), packed...)
	return pg
}

var errPacked = errors.New("a page in memory is damaged")

// unpack calls f with each item of the page. The items are valid until done is called.
func (pg *page) unpack(f func(item []byte) error) (done func(), err error) {
	buf := buffers.Get().(*[]byte)
	done = func() { buffers.Put(buf) }
	raw, err := s2.Decode((*buf)[:cap(*buf)], pg.packed)
	if err != nil {
		return done, err
	}
	if cap(raw) > cap(*buf) {
		*buf = raw
	}
	for len(raw) > 0 {
		n, head := binary.Uvarint(raw)
		if head <= 0 || n > maxItem || uint64(len(raw)-head) < n {
			return done, errPacked
		}
		if err := f(raw[head : head+int(n) : head+int(n)]); err != nil {
			return done, err
		}
		raw = raw[head+int(n):]
	}
	return done, nil
}

// pageRoom is how much memory is reserved for a page before it is read: the service returns at most
// 1 MB of items. Their JSON is larger, and compresses.
const pageRoom = 5 << 18

// Memory bounds the packed pages in hand, of all tables together.
//
// Rule 9: bounded in bytes. A page stays in memory while the stream catches up with its reading, so
// this limit divided by that time is the highest rate of a copy.
type Memory struct {
	room  *semaphore.Weighted
	limit int64
}

// NewMemory returns a budget of limit bytes, at least one page.
func NewMemory(limit int64) *Memory {
	limit = max(limit, pageRoom)
	return &Memory{room: semaphore.NewWeighted(limit), limit: limit}
}

// reserve blocks until there is room for a page that is not read yet.
func (m *Memory) reserve(ctx context.Context) error { return m.room.Acquire(ctx, pageRoom) }

// settle replaces the reservation by the size of the page. The caller calls release when it drops
// the page. A page that is larger than the reservation does not wait for more room.
func (m *Memory) settle(pg *page) (release func()) {
	held := int64(pageRoom)
	if size := int64(len(pg.packed)) + 512; size < held {
		m.room.Release(held - size)
		held = size
	}
	return func() { m.room.Release(held) }
}

// cancel gives a reservation back.
func (m *Memory) cancel() { m.room.Release(pageRoom) }
