// Package frame packs pages of records into the frames that a log stores, and unpacks them. It
// needs no server.
package frame

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

const (
	// maxFrame is the most bytes of records in one frame before compression. Larger frames would
	// not be faster, because an fsync takes little time compared with writing 4 MiB, and would take
	// more memory in writers and readers.
	maxFrame = 4 << 20
	// maxUnpacked bounds the size of a stored frame after decompression, far above the size of any
	// record of DynamoDB.
	maxUnpacked = 64 << 20
	// headBytes is an estimate of the size of a page's head in the entry, without its strings.
	headBytes = 400
	// frameOverhead is the size of the rest of the message: the entry's own head, the message's
	// headers.
	frameOverhead = 1024
)

// Packed is a frame ready to be appended.
type Packed struct {
	Body *checkpoint.Frame
	Data []byte

	buf *[]byte
}

// keep moves Data into a buffer of its own, as large as the data, which is a fraction of what
// encoding it takes. The frames of many tables wait for the server at a time.
func (p *Packed) keep() {
	if len(p.Data) > 0 {
		p.buf = Buffer(len(p.Data))
		*p.buf = append(*p.buf, p.Data...)
		p.Data = *p.buf
	}
}

// Release recycles the memory of Data, once the frame was appended. Leaving it to the garbage
// collector costs several times as much.
func (p *Packed) Release() {
	Recycle(p.buf)
	p.Data, p.buf = nil, nil
}

// ErrTooLarge means that an entry exceeds what the server accepts, so that nothing was or will be
// stored.
var ErrTooLarge = errors.New("entry is too large")

// TooLargeError reports that a single record, compressed, exceeds what the server accepts. It
// matches ErrTooLarge. The table halts until the server accepts larger messages.
type TooLargeError struct {
	Feed  change.Feed
	Seq   change.SequenceNumber
	Bytes int // of the record, compressed
	Limit int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("record %s of shard %s takes %d bytes, the server accepts %d: raise max_payload",
		e.Seq, e.Feed.Shard, e.Bytes, e.Limit)
}

// Is lets errors.Is(err, ErrTooLarge) find it.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// Pack packs pages, in their order, into as few frames as fit: at most 4 MiB of records and at most
// maxPayload bytes of message each (Queue.MaxPayload). A page too large for one frame is split at
// its records; each part has its own position and clock, only the last one carries Done.
// *TooLargeError when a single record does not fit. Data does not alias the pages.
func Pack(pages []*change.Page, maxPayload int) ([]Packed, error) {
	p := packer{
		limit: Room(maxPayload), payload: maxPayload - frameOverhead, work: works.Get().(*work),
	}
	defer works.Put(p.work)
	for _, page := range pages {
		if err := p.add(page); err != nil {
			return nil, fmt.Errorf("pack frame: %w", err)
		}
	}
	if err := p.flush(); err != nil {
		return nil, fmt.Errorf("pack frame: %w", err)
	}
	return p.frames, nil
}

// Room returns how much one frame holds, as Size counts it, with messages of at most maxPayload bytes.
func Room(maxPayload int) int { return min(maxFrame, maxPayload-frameOverhead) }

// Size returns how much of Room a page takes. Pages that fit together become one frame unless they
// compress badly.
func Size(p *change.Page) int {
	size := headSize(p.Feed)
	for i := range p.Records {
		size += recordSize(&p.Records[i])
	}
	return size
}

func headSize(f change.Feed) int { return headBytes + len(f.Stream) + len(f.Shard) }

func recordSize(r *change.Record) int { return len(r.Raw) + len(r.SequenceNumber) + 64 }

// piece is a page or a part of one.
type piece struct {
	head checkpoint.PageHead
	recs []change.Record
}

// packer collects pieces until they fill a frame.
type packer struct {
	limit   int // of unpacked records and heads
	payload int // of the message
	pieces  []piece
	size    int
	frames  []Packed
	work    *work
}

// add puts a page into the current frame, and into further ones as far as it does not fit.
func (p *packer) add(page *change.Page) error {
	rest := piece{head: checkpoint.PageHead{
		Feed: page.Feed, From: page.From, To: page.To, ClockFrom: page.ClockFrom, Clock: page.Clock,
		Done: page.Done, Date: page.Date,
	}, recs: page.Records}
	for {
		n, size := p.countFitting(rest)
		switch {
		case n == len(rest.recs) && p.size+size <= p.limit:
			p.include(rest, size)
			return nil
		case len(p.pieces) > 0: // it may fit into a frame of its own
			if err := p.flush(); err != nil {
				return err
			}
			continue
		}
		// A record larger than a whole frame goes alone: compressed it may fit.
		first, left := rest.split(max(n, 1))
		p.include(first, size)
		if err := p.flush(); err != nil || len(left.recs) == 0 {
			return err
		}
		rest = left
	}
}

// countFitting returns how many records of a piece the current frame still takes, and their size
// with the head.
func (p *packer) countFitting(c piece) (n, size int) {
	size = headSize(c.head.Feed)
	for ; n < len(c.recs); n++ {
		next := recordSize(&c.recs[n])
		if p.size+size+next > p.limit {
			break
		}
		size += next
	}
	return n, size
}

// include puts a piece into the current frame.
func (p *packer) include(c piece, size int) {
	p.pieces, p.size = append(p.pieces, c), p.size+size
}

// split divides a piece before record n. When no record follows, first is the whole piece and left
// is empty.
func (c piece) split(n int) (first, left piece) {
	if n >= len(c.recs) {
		return c, piece{}
	}
	last := &c.recs[n-1]
	first, left = piece{c.head, c.recs[:n]}, piece{c.head, c.recs[n:]}
	first.head.To = change.Position{After: change.SequenceNumber(last.SequenceNumber)}
	first.head.Clock, first.head.Done = last.Version, false
	left.head.From, left.head.ClockFrom = first.head.To, first.head.Clock
	return first, left
}

// flush makes frames of the pieces collected so far: one, or more when they do not compress enough.
func (p *packer) flush() error {
	pieces := p.pieces
	p.pieces, p.size = nil, 0
	if len(pieces) == 0 {
		return nil
	}
	return p.compress(pieces)
}

// compress makes a frame of pieces. While the frame is larger than a message may be, it splits them
// and tries again.
func (p *packer) compress(pieces []piece) error {
	body, raw, heads := p.join(pieces)
	frame := Packed{Body: body}
	if len(raw) > 0 {
		frame.Data = s2.Encode(p.work.forEncoding(s2.MaxEncodedLen(len(raw))), raw)
	}
	size := len(frame.Data) + heads
	if size <= p.payload {
		frame.keep()
		p.frames = append(p.frames, frame)
		return nil
	}
	left, right, err := splitPieces(pieces, size, p.payload)
	if err != nil {
		return err
	}
	if err := p.compress(left); err != nil {
		return err
	}
	return p.compress(right)
}

// join writes the records of pieces one after the other into raw, which is valid until the next
// call. heads is the estimated size of the pages' heads.
func (p *packer) join(pieces []piece) (body *checkpoint.Frame, raw []byte, heads int) {
	body = &checkpoint.Frame{Pages: make([]checkpoint.PageHead, len(pieces))}
	raw = p.work.forRecords(sizeOf(pieces))
	for i, c := range pieces {
		h := &body.Pages[i]
		*h = c.head
		h.Records, h.Offset = len(c.recs), len(raw)
		if len(c.recs) > 0 {
			raw = change.AppendRecords(raw, c.recs)
			h.Oldest, h.Newest = c.recs[0].Created, c.recs[len(c.recs)-1].Created
			h.Expired = countExpired(c.recs)
		}
		h.Length = len(raw) - h.Offset
		heads += headSize(h.Feed)
	}
	p.work.records = raw
	return body, raw, heads
}

// countExpired counts the deletions by TTL; nil when there are none.
func countExpired(recs []change.Record) (counts checkpoint.CountsByHour) {
	for i := range recs {
		if recs[i].TTL {
			if counts == nil {
				counts = checkpoint.CountsByHour{}
			}
			counts[checkpoint.HourOf(recs[i].Created)]++
		}
	}
	return counts
}

// sizeOf returns an upper bound for the size of the records of pieces.
func sizeOf(pieces []piece) (size int) {
	for _, c := range pieces {
		size += 16
		for i := range c.recs {
			size += len(c.recs[i].Raw) + len(c.recs[i].SequenceNumber) + 80
		}
	}
	return size
}

// splitPieces splits pieces in the middle: between two pieces, or between two records if there is
// only one piece. *TooLargeError when there is only one record.
func splitPieces(pieces []piece, size, limit int) (left, right []piece, err error) {
	if n := len(pieces); n > 1 {
		return pieces[:n/2], pieces[n/2:], nil
	}
	c := pieces[0]
	if len(c.recs) < 2 {
		e := &TooLargeError{Feed: c.head.Feed, Bytes: size, Limit: limit}
		if len(c.recs) == 1 {
			e.Seq = change.SequenceNumber(c.recs[0].SequenceNumber)
		}
		return nil, nil, e
	}
	first, rest := c.split(len(c.recs) / 2)
	return []piece{first}, []piece{rest}, nil
}

// Unpack calls f with each change of a frame, in order. The change is valid during the call; its
// slices alias the returned buffer (buf, or a larger one), and stay valid until that is passed to
// Unpack again. It ends with the first error of f, which it returns unwrapped.
func Unpack(
	e *checkpoint.Entry, buf []byte, f func(page *checkpoint.PageHead, c *change.Change) error,
) ([]byte, error) {
	body, ok := e.Body.(*checkpoint.Frame)
	if !ok {
		return buf, fmt.Errorf("unpack frame: %T is not a frame", e.Body)
	}
	raw, buf, err := Decompress(e.Data, buf)
	if err != nil {
		return buf, fmt.Errorf("unpack frame: %w", err)
	}
	for i := range body.Pages {
		p := &body.Pages[i]
		if p.Records == 0 {
			continue
		}
		if p.Offset < 0 || p.Length < 0 || p.Offset > len(raw) || p.Length > len(raw)-p.Offset {
			return buf, fmt.Errorf("unpack frame: page %d lies outside of its data", i)
		}
		err := change.DecodeRecords(raw[p.Offset:p.Offset+p.Length], p.Feed, func(c *change.Change) error { return f(p, c) })
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// Decompress returns the bytes that s2 compressed into data. They alias the returned buffer: buf,
// or a larger one.
func Decompress(data, buf []byte) (raw, grown []byte, err error) {
	if len(data) == 0 {
		return nil, buf, nil
	}
	n, err := s2.DecodedLen(data)
	if err != nil {
		return nil, buf, err
	}
	if n > maxUnpacked {
		return nil, buf, fmt.Errorf("%d bytes of records in one frame, more than %d", n, maxUnpacked)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	raw, err = s2.Decode(buf[:cap(buf)], data)
	return raw, buf, err
}
