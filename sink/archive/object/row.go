package object

import (
	"bytes"
	"errors"
	"unsafe"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/transform"
)

// row is an event as it is read, and as both formats give it. The slices are valid until the next
// batch.
type row struct {
	id, source, stream, shard, sequence, keys []byte
	item, expiry                              []byte // nil where there is none
	version, created                          int64
}

var errID = errors.New("id is not stream/shard/sequence")

// splitID takes stream, shard and sequence number from the id.
func (r *row) splitID() error {
	i := bytes.LastIndexByte(r.id, '/')
	if i < 0 {
		return errID
	}
	k := bytes.LastIndexByte(r.id[:i], '/')
	if k < 0 {
		return errID
	}
	r.stream, r.shard, r.sequence = r.id[:k], r.id[k+1:i], r.id[i+1:]
	return nil
}

// event returns a copy of the row.
func (r *row) event(f *Footer) *transform.Event {
	return &transform.Event{
		Class: f.Part.Class, Table: f.Part.Table, Source: string(r.source), Subject: string(r.keys),
		Stream: string(r.stream), Shard: string(r.shard), Sequence: change.SequenceNumber(r.sequence),
		Version: change.Version(r.version), Created: change.Millis(r.created),
		Item: bytes.Clone(r.item), Expiry: string(r.expiry),
	}
}

func appendID(dst []byte, e *transform.Event) []byte {
	dst = append(append(dst, e.Stream...), '/')
	dst = append(append(dst, e.Shard...), '/')
	return append(dst, e.Sequence...)
}

func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns a string's bytes, which must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
