package bigtable

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tailrace-cdc/replicator/transform"
)

// A request is marshalled without the generated messages, because every change is one
// CheckAndMutateRowRequest, and building, measuring and marshalling that message cost more than
// everything else that the sink does for a change (docs/decisions/0012-sink-calls.md). Field
// numbers come from google/bigtable/v2/bigtable.proto and data.proto; a test reads the bytes back
// with the generated code.

// codec writes requests and reads their replies. Every other message is left to gRPC's codec.
type codec struct{ encoding.CodecV2 }

// Marshal writes into a buffer that gRPC frees after the transport has sent it. So the request may
// be used again as soon as the call returns, even where the caller gave up the call and its frame
// still waits to be sent.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(*request)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := r.size()
	if mem.IsBelowBufferPoolingThreshold(size) {
		return mem.BufferSlice{mem.SliceBuffer(r.append(make([]byte, 0, size)))}, nil
	}
	buf := buffers.Get(size)
	*buf = r.append((*buf)[:0])
	return mem.BufferSlice{mem.NewBuffer(buf, buffers)}, nil
}

// buffers have more sizes than gRPC's own pool, in which a request of 100 KB takes 1 MiB.
var buffers = mem.NewTieredBufferPool(4<<10, 8<<10, 16<<10, 32<<10, 64<<10, 128<<10, 256<<10, 512<<10, 1<<20, 2<<20)

// Unmarshal reads a CheckAndMutateRowResponse into its request.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*request)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	r.matched = false
	for raw := data.Materialize(); len(raw) > 0; {
		field, typ, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return fmt.Errorf("decode reply: %w", protowire.ParseError(n))
		}
		raw = raw[n:]
		if field == 1 && typ == protowire.VarintType {
			var v uint64
			if v, n = protowire.ConsumeVarint(raw); n >= 0 {
				r.matched = v != 0
			}
		} else {
			n = protowire.ConsumeFieldValue(field, typ, raw)
		}
		if n < 0 {
			return fmt.Errorf("decode reply: %w", protowire.ParseError(n))
		}
		raw = raw[n:]
	}
	return nil
}

// The following functions return sizes of fields with numbers below 16, so that a tag is one byte.
// messageSize includes empty fields, because members of a oneof are sent even if they are empty.
// textSize and numberSize do not, as proto3 omits empty fields.
func messageSize(size int) int { return 1 + protowire.SizeBytes(size) }

func textSize[T string | []byte](v T) int {
	if len(v) == 0 {
		return 0
	}
	return messageSize(len(v))
}

func numberSize(v int64) int {
	if v == 0 {
		return 0
	}
	return 1 + protowire.SizeVarint(uint64(v))
}

func appendTag(dst []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(append(dst, byte(field)<<3|byte(protowire.BytesType)), uint64(size))
}

func appendMember[T string | []byte](dst []byte, field protowire.Number, v T) []byte {
	return append(appendTag(dst, field, len(v)), v...)
}

func appendText[T string | []byte](dst []byte, field protowire.Number, v T) []byte {
	if len(v) == 0 {
		return dst
	}
	return appendMember(dst, field, v)
}

func appendNumber(dst []byte, field protowire.Number, v int64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(append(dst, byte(field)<<3|byte(protowire.VarintType)), uint64(v))
}

// size returns how many bytes append appends.
func (r *request) size() int {
	n := textSize(r.table) + textSize(r.key) + textSize(r.profile)
	for i := range r.skip {
		n += messageSize(messageSize(r.skip[i].size()))
	}
	for i := range r.body {
		n += messageSize(messageSize(r.body[i].size()))
	}
	if r.filter != nil {
		return n + messageSize(len(r.filter))
	}
	return n + messageSize(r.guard.size())
}

// append appends the request as a CheckAndMutateRowRequest.
func (r *request) append(dst []byte) []byte {
	dst = appendText(dst, 1, r.table)
	dst = appendText(dst, 2, r.key)
	for i := range r.skip {
		dst = r.skip[i].append(dst, 4)
	}
	for i := range r.body {
		dst = r.body[i].append(dst, 5)
	}
	if r.filter != nil {
		dst = appendMember(dst, 6, r.filter)
	} else {
		dst = r.guard.append(appendTag(dst, 6, r.guard.size()))
	}
	return appendText(dst, 7, r.profile)
}

// guardFamilies are the families of the guard's two columns.
var guardFamilies = [...]string{transform.LiveFamily, transform.DeadFamily}

func (g *predicate) columnSize(family string) int {
	return textSize(family) + messageSize(len(g.qualifier)) + messageSize(len(g.qualifier)+1)
}

func (g *predicate) chainSize(family string) int {
	return messageSize(messageSize(g.columnSize(family))) + messageSize(messageSize(numberSize(g.micros())))
}

// micros returns the guard's version as a timestamp of Bigtable.
func (g *predicate) micros() int64 { return int64(g.version) * 1000 }

func (g *predicate) size() int {
	n := 0
	for _, family := range guardFamilies {
		n += messageSize(messageSize(g.chainSize(family)))
	}
	return messageSize(n)
}

// append appends a RowFilter:
//
//	interleave 2 { filters 1 { chain 1 { filters 1 { column range 7 }, filters 1 { timestamp range 8 }}}}
func (g *predicate) append(dst []byte) []byte {
	whole := 0
	for _, family := range guardFamilies {
		whole += messageSize(messageSize(g.chainSize(family)))
	}
	dst = appendTag(dst, 2, whole)
	for _, family := range guardFamilies {
		chain, column, since := g.chainSize(family), g.columnSize(family), numberSize(g.micros())
		dst = appendTag(appendTag(dst, 1, messageSize(chain)), 1, chain)
		dst = appendTag(appendTag(dst, 1, messageSize(column)), 7, column)
		dst = appendMember(appendText(dst, 1, family), 2, g.qualifier)
		dst = append(append(appendTag(dst, 5, len(g.qualifier)+1), g.qualifier...), 0)
		dst = appendTag(appendTag(dst, 1, messageSize(since)), 8, since)
		dst = appendNumber(dst, 1, g.micros())
	}
	return dst
}

// size returns the length of the mutation's inner message.
func (o *op) size() int {
	switch o.kind {
	case opSet:
		return textSize(o.family) + textSize(o.qualifier) + numberSize(o.from*1000) + textSize(o.value)
	case opDeleteColumn:
		n := textSize(o.family) + textSize(o.qualifier)
		if o.from != 0 || o.to != 0 {
			n += messageSize(numberSize(o.from*1000) + numberSize(o.to*1000))
		}
		return n
	case opAdd:
		column, at, input := o.addSizes()
		return textSize(o.family) + messageSize(column) + messageSize(at) + messageSize(input)
	}
	return textSize(o.family)
}

// addSizes returns the sizes of the three values of an opAdd.
func (o *op) addSizes() (column, at, input int) {
	at = 1 + protowire.SizeVarint(uint64(o.from*1000))
	input = 1 + protowire.SizeVarint(binary.BigEndian.Uint64(o.value))
	return messageSize(len(o.qualifier)), at, input
}

// append appends a mutation as a field of the request.
func (o *op) append(dst []byte, field protowire.Number) []byte {
	size := o.size()
	dst = appendTag(appendTag(dst, field, messageSize(size)), protowire.Number(o.kind), size)
	dst = appendText(dst, 1, o.family)
	switch o.kind {
	case opSet:
		dst = appendNumber(appendText(dst, 2, o.qualifier), 3, o.from*1000)
		dst = appendText(dst, 4, o.value)
	case opDeleteColumn:
		dst = appendText(dst, 2, o.qualifier)
		if o.from != 0 || o.to != 0 {
			dst = appendTag(dst, 3, numberSize(o.from*1000)+numberSize(o.to*1000))
			dst = appendNumber(appendNumber(dst, 1, o.from*1000), 2, o.to*1000)
		}
	case opAdd: // google.bigtable.v2.Value: raw_value 8, raw_timestamp_micros 9, int_value 6
		column, at, input := o.addSizes()
		dst = appendMember(appendTag(dst, 2, column), 8, o.qualifier)
		dst = protowire.AppendVarint(append(appendTag(dst, 3, at), 9<<3), uint64(o.from*1000))
		dst = protowire.AppendVarint(append(appendTag(dst, 4, input), 6<<3), binary.BigEndian.Uint64(o.value))
	}
	return dst
}
