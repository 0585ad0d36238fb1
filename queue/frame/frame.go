package frame

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

const (
	// maxFrame is how many bytes of records go into one frame before compression. A larger one would gain
	// nothing (an fsync is cheap against 4 MiB) and cost memory at both ends.
	maxFrame = 4 << 20
	// maxUnpacked bounds what a stored frame may unpack to: no record of DynamoDB comes near it.
	maxUnpacked = 64 << 20
	// headBytes is about what a page's head takes in the entry, beside its strings.
	headBytes = 400
	// frameOverhead is what the rest of the message takes: the entry's own head, the message's headers.
	frameOverhead = 1024
)

// Packed is a frame ready to be appended.
type Packed struct {
	Body *checkpoint.Frame
	Data []byte

	buf *[]byte
}

// Release gives the memory of Data back, once it was appended. Without it the garbage collector does, at
// several times the cost.
func (p *Packed) Release() {
	Recycle(p.buf)
	p.Data, p.buf = nil, nil
}

// ErrTooLarge means that an entry exceeds what the server accepts, so that nothing was or will be stored.
var ErrTooLarge = errors.New("entry is too large")

// TooLargeError says that one record alone exceeds what the server accepts, compressed as it is. It matches
// ErrTooLarge. The table halts until the server accepts more.
type TooLargeError struct {
	Feed  change.Feed
	Seq   change.SequenceNumber
	Bytes int // of the record, compressed
	Limit int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("record %s of shard %s takes %d bytes, the server accepts %d: raise max_payload", e.Seq, e.Feed.Shard, e.Bytes, e.Limit)
}

// Is lets errors.Is(err, ErrTooLarge) find it.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// Pack packs pages, in their order, into as few frames as fit: at most 4 MiB of records and at most
// maxPayload bytes of message each (Queue.MaxPayload). A page too large for one frame is split at its records;
// each part has its own position and clock, only the last one carries Done. *TooLargeError when a single record
// does not fit. Data does not alias the pages.
func Pack(pages []*change.Page, maxPayload int) ([]Packed, error) {
	p := packer{limit: min(maxFrame, maxPayload-frameOverhead), payload: maxPayload - frameOverhead}
	defer func() { Recycle(p.raw) }()
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

// piece is a page or a part of one.
type piece struct {
	head checkpoint.PageHead
	recs []change.Record
}

type packer struct {
	limit   int // of unpacked records and heads
	payload int // of the message
	pieces  []piece
	size    int
	frames  []Packed
	raw     *[]byte
}

func (p *packer) add(page *change.Page) error {
	rest := piece{head: checkpoint.PageHead{
		Feed: page.Feed, From: page.From, To: page.To, ClockFrom: page.ClockFrom, Clock: page.Clock, Done: page.Done, Date: page.Date,
	}, recs: page.Records}
	for {
		n, size := p.fitting(rest)
		switch {
		case n == len(rest.recs) && p.size+size <= p.limit:
			p.take(rest, size)
			return nil
		case len(p.pieces) > 0: // it may fit into a frame of its own
			if err := p.flush(); err != nil {
				return err
			}
			continue
		}
		// A record larger than a whole frame goes alone: compressed it may fit.
		first, left := rest.cut(max(n, 1))
		p.take(first, size)
		if err := p.flush(); err != nil || len(left.recs) == 0 {
			return err
		}
		rest = left
	}
}

// fitting returns how many records of a piece the current frame still takes, and their size with the head.
func (p *packer) fitting(c piece) (n, size int) {
	size = headBytes + len(c.head.Feed.Stream) + len(c.head.Feed.Shard)
	for ; n < len(c.recs); n++ {
		next := len(c.recs[n].Raw) + len(c.recs[n].SequenceNumber) + 64
		if p.size+size+next > p.limit {
			break
		}
		size += next
	}
	return n, size
}

func (p *packer) take(c piece, size int) {
	p.pieces, p.size = append(p.pieces, c), p.size+size
}

// cut splits a piece before record n. With nothing left behind it, the first part is the whole.
func (c piece) cut(n int) (first, left piece) {
	if n >= len(c.recs) {
		return c, piece{}
	}
	last := &c.recs[n-1]
	first, left = piece{c.head, c.recs[:n]}, piece{c.head, c.recs[n:]}
	first.head.To, first.head.Clock, first.head.Done = change.Position{After: change.SequenceNumber(last.SequenceNumber)}, last.Version, false
	left.head.From, left.head.ClockFrom = first.head.To, first.head.Clock
	return first, left
}

// flush packs what was taken into a frame, or into two when it does not compress enough.
func (p *packer) flush() error {
	pieces := p.pieces
	p.pieces, p.size = nil, 0
	if len(pieces) == 0 {
		return nil
	}
	return p.emit(pieces)
}

func (p *packer) emit(pieces []piece) error {
	body, raw, heads := p.unite(pieces)
	frame := Packed{Body: body}
	if len(raw) > 0 {
		frame.buf = Buffer(s2.MaxEncodedLen(len(raw)))
		frame.Data = s2.Encode((*frame.buf)[:cap(*frame.buf)], raw)
	}
	size := len(frame.Data) + heads
	if size <= p.payload {
		p.frames = append(p.frames, frame)
		return nil
	}
	frame.Release()
	left, right, err := halve(pieces, size, p.payload)
	if err != nil {
		return err
	}
	if err := p.emit(left); err != nil {
		return err
	}
	return p.emit(right)
}

// unite writes the records of pieces one after the other. raw is valid until the next call.
func (p *packer) unite(pieces []piece) (body *checkpoint.Frame, raw []byte, heads int) {
	body = &checkpoint.Frame{Pages: make([]checkpoint.PageHead, len(pieces))}
	if p.raw == nil {
		p.raw = Buffer(sizeOf(pieces))
	}
	raw = (*p.raw)[:0]
	for i, c := range pieces {
		h := &body.Pages[i]
		*h = c.head
		h.Records, h.Offset = len(c.recs), len(raw)
		if len(c.recs) > 0 {
			raw = change.AppendRecords(raw, c.recs)
			h.Oldest, h.Newest = c.recs[0].Created, c.recs[len(c.recs)-1].Created
		}
		h.Length = len(raw) - h.Offset
		heads += headBytes + len(h.Feed.Stream) + len(h.Feed.Shard)
	}
	*p.raw = raw
	return body, raw, heads
}

// sizeOf is an upper bound of what the records of pieces take.
func sizeOf(pieces []piece) (size int) {
	for _, c := range pieces {
		size += 16
		for i := range c.recs {
			size += len(c.recs[i].Raw) + len(c.recs[i].SequenceNumber) + 80
		}
	}
	return size
}

// halve splits pieces in the middle: between pages, or between the records of the only one.
func halve(pieces []piece, size, limit int) (left, right []piece, err error) {
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
	first, rest := c.cut(len(c.recs) / 2)
	return []piece{first}, []piece{rest}, nil
}

// Unpack calls f with each change of a frame, in order. The change is valid during the call; its slices
// alias buf or what replaces it, and stay valid until that is used again. It returns the buffer for the next
// frame. An error of f ends it and is returned as it is.
func Unpack(e *checkpoint.Entry, buf []byte, f func(page *checkpoint.PageHead, c *change.Change) error) ([]byte, error) {
	body, ok := e.Body.(*checkpoint.Frame)
	if !ok {
		return buf, fmt.Errorf("unpack frame: %T is none", e.Body)
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

// Decompress returns the bytes that s2 compressed into data. They alias the returned buffer: buf, or a larger one.
func Decompress(data, buf []byte) (raw, grown []byte, err error) {
	if len(data) == 0 {
		return nil, buf, nil
	}
	n, err := s2.DecodedLen(data)
	if err != nil {
		return nil, buf, err
	}
	if n > maxUnpacked {
		return nil, buf, fmt.Errorf("%d bytes of records in one frame", n)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	raw, err = s2.Decode(buf[:cap(buf)], data)
	return raw, buf, err
}
