// Package exchange is one request of an application with its answer, as the front of a shadow run
// passes it on. Frames carry it over a pipe between two processes.
//
//	pipe.Write(exchange.Append(nil, x)) // one frame, in one process
//	r := exchange.NewReader(pipe)       // in the other
//	x, err := r.Next()                  // io.EOF behind the last whole frame
//
// Bodies are the bytes on the wire without their chunks: they may be compressed.
package exchange

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"time"
)

// MaxBody is the longest body that an exchange has. Of a longer one it has the size alone.
const MaxBody = 1 << 20

// MaxText is the longest target or encoding that an exchange has.
const MaxText = 256

// Exchange is one request and its answer.
type Exchange struct {
	Target  string // the header X-Amz-Target, such as DynamoDB_20120810.GetItem
	Request Body
	Answer  Body
	Status  int // of the answer; 0: none came, because the request was mirrored or the service cut

	Begin    time.Time     // when the head of the request was read
	Duration time.Duration // until the last byte of the answer was passed on; 0 without an answer

	// Cut is set where the connection ended before the answer did, so that the application has a
	// part of it at most.
	Cut bool
}

// Body is the body of a request or an answer.
type Body struct {
	Bytes    []byte // nil: the body was not taken along
	Encoding string // Content-Encoding; "": none
	Size     int64  // in bytes, without chunks
}

// Whole reports whether the body was taken along. It may still be a part of what was meant: see
// Exchange.Cut.
func (b *Body) Whole() bool { return b.Bytes != nil && int64(len(b.Bytes)) == b.Size }

// ErrNotWhole means that a body was not taken along, or is longer than MaxBody once it is unpacked.
var ErrNotWhole = errors.New("the body was not taken along")

// Text returns the body as it was before it was compressed.
func (b *Body) Text() ([]byte, error) {
	if !b.Whole() {
		return nil, ErrNotWhole
	}
	var unpacked io.Reader
	var err error
	switch b.Encoding {
	case "gzip":
		unpacked, err = gzip.NewReader(bytes.NewReader(b.Bytes))
	case "deflate":
		unpacked, err = zlib.NewReader(bytes.NewReader(b.Bytes))
	default:
		return b.Bytes, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(unpacked, MaxBody+1))
	if err == nil && len(text) > MaxBody {
		err = ErrNotWhole
	}
	return text, err
}

// Memory returns the bytes that an exchange takes in memory, about.
func (x *Exchange) Memory() int64 {
	const fields = 256
	return int64(fields + len(x.Target) + cap(x.Request.Bytes) + cap(x.Answer.Bytes))
}
