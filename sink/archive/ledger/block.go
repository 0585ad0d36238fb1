package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/tailrace-cdc/replicator/transform"
)

// A block holds the events of a group: each with the lengths of its parts before them, all of them
// compressed with S2.

// appendEvent adds an event to a block that is not compressed yet.
func appendEvent(dst []byte, e *transform.Event) []byte {
	dst = binary.AppendVarint(dst, int64(e.Created))
	dst = binary.AppendVarint(dst, int64(e.Version))
	for _, s := range []string{e.Stream, e.Shard, string(e.Sequence), e.Subject, e.Expiry} {
		dst = append(binary.AppendUvarint(dst, uint64(len(s))), s...)
	}
	if e.Item == nil { // the stream has no old images
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(e.Item))+1), e.Item...)
}

// compress returns the stored form of a block.
func compress(dst, raw []byte) []byte {
	n := len(dst)
	dst = append(dst, make([]byte, s2.MaxEncodedLen(len(raw)))...)
	return dst[:n+len(s2.Encode(dst[n:], raw))]
}

// ErrBlock means that the events of an entry cannot be read.
var ErrBlock = errors.New("block of events is damaged")

// maxBlock bounds what a damaged block may claim to be, in bytes.
const maxBlock = 1 << 30

// Block is the events of a group as they are stored, and what they have in common.
type Block struct {
	Class         transform.EventClass
	Table, Source string
	Stored        []byte
}

// Block returns the block of one of the entry's groups. It aliases the entry's data.
func (e *Entry) Block(g *Group) (Block, error) {
	events, ok := e.Body.(*Events)
	if !ok || g.Offset < 0 || g.Length < 0 || g.Offset > len(e.Data) || g.Length > len(e.Data)-g.Offset {
		return Block{}, ErrBlock
	}
	return Block{
		Class: g.Class, Table: events.Table, Source: events.Source, Stored: e.Data[g.Offset : g.Offset+g.Length],
	}, nil
}

// Each calls yield for the events; their slices alias a buffer of this call's own.
func (b Block) Each(yield func(*transform.Event) error) error {
	if n, err := s2.DecodedLen(b.Stored); err != nil || n > maxBlock {
		return ErrBlock
	}
	raw, err := s2.Decode(nil, b.Stored)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBlock, err)
	}
	text := string(raw) // the strings of all events share it
	for at := 0; at < len(raw); {
		event, n := readEvent(text[at:], raw[at:])
		if n <= 0 {
			return ErrBlock
		}
		at += n
		event.Class, event.Table, event.Source = b.Class, b.Table, b.Source
		if err := yield(event); err != nil {
			return err
		}
	}
	return nil
}

// readEvent reads what appendEvent writes, and returns its length; 0 when it is damaged.
func readEvent(text string, raw []byte) (*transform.Event, int) {
	e, at := new(transform.Event), 0
	for _, v := range []*int64{(*int64)(&e.Created), (*int64)(&e.Version)} {
		x, n := binary.Varint(raw[at:])
		if n <= 0 {
			return nil, 0
		}
		*v, at = x, at+n
	}
	for _, v := range []*string{&e.Stream, &e.Shard, (*string)(&e.Sequence), &e.Subject, &e.Expiry} {
		size, n := binary.Uvarint(raw[at:])
		if n <= 0 || size > uint64(len(raw)-at-n) {
			return nil, 0
		}
		at += n
		*v, at = text[at:at+int(size)], at+int(size)
	}
	size, n := binary.Uvarint(raw[at:])
	if n <= 0 || size > uint64(len(raw)-at-n)+1 {
		return nil, 0
	}
	if at += n; size > 0 {
		e.Item = raw[at : at+int(size)-1 : at+int(size)-1]
		at += int(size) - 1
	}
	return e, at
}

// Each calls yield for the events of an entry of a class and an hour; with an empty class for all
// of them. Other entries than Events have none.
func (e *Entry) Each(class transform.EventClass, hour int64, yield func(*transform.Event) error) error {
	b, ok := e.Body.(*Events)
	if !ok {
		return nil
	}
	for i := range b.Groups {
		g := &b.Groups[i]
		if class != "" && (g.Class != class || int64(g.Hour) != hour) {
			continue
		}
		block, err := e.Block(g)
		if err == nil {
			err = block.Each(yield)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
