package exchange

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// A frame is its version, the length of its content, a checksum of it, and the content: numbers as
// varints, texts and bodies behind their lengths.
const (
	version  = 1
	prefix   = 1 + 4 + 4
	maxFrame = 2*MaxBody + 3*MaxText + 128
)

// castagnoli is the polynomial that processors compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FrameError is a frame that cannot be read. What follows it cannot be read either, because its
// length is not known for certain.
type FrameError struct {
	Number int64 // of the frame, from 1
	Reason string
	Err    error // of the pipe or of the decoder; may be nil
}

func (e *FrameError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("frame %d: %s: %v", e.Number, e.Reason, e.Err)
	}
	return fmt.Sprintf("frame %d: %s", e.Number, e.Reason)
}

func (e *FrameError) Unwrap() error { return e.Err }

// Append appends the frame of an exchange. Texts beyond MaxText are shortened, and a body beyond
// MaxBody is left out, so that a reader accepts every frame.
func Append(b []byte, x *Exchange) []byte {
	start := len(b)
	b = append(b, version, 0, 0, 0, 0, 0, 0, 0, 0)
	b = appendText(b, x.Target)
	b = appendBody(b, &x.Request)
	b = appendBody(b, &x.Answer)
	b = binary.AppendVarint(b, int64(x.Status))
	b = binary.AppendVarint(b, x.Begin.UnixNano())
	b = binary.AppendVarint(b, int64(x.Duration))
	b = appendBool(b, x.Cut)
	content := b[start+prefix:]
	binary.BigEndian.PutUint32(b[start+1:], uint32(len(content)))
	binary.BigEndian.PutUint32(b[start+5:], crc32.Checksum(content, castagnoli))
	return b
}

func appendText(b []byte, s string) []byte {
	s = s[:min(len(s), MaxText)]
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendBody(b []byte, body *Body) []byte {
	b = appendText(b, body.Encoding)
	b = binary.AppendVarint(b, body.Size)
	taken := body.Bytes != nil && len(body.Bytes) <= MaxBody
	if b = appendBool(b, taken); !taken {
		return b
	}
	return append(binary.AppendUvarint(b, uint64(len(body.Bytes))), body.Bytes...)
}

// Reader reads frames. It is used by one goroutine.
type Reader struct {
	from   *bufio.Reader
	number int64
}

// NewReader returns a reader of the frames in r.
func NewReader(r io.Reader) *Reader { return &Reader{from: bufio.NewReaderSize(r, 64<<10)} }

// Next returns the exchange of the next frame. It returns io.EOF where the pipe ends behind a whole
// frame, and a *FrameError where it ends within one or a frame is damaged.
func (r *Reader) Next() (*Exchange, error) {
	r.number++
	var head [prefix]byte
	switch _, err := io.ReadFull(r.from, head[:]); {
	case errors.Is(err, io.EOF): // not ErrUnexpectedEOF: nothing of a frame was read
		return nil, io.EOF
	case err != nil:
		return nil, &FrameError{r.number, "it ends in its head", err}
	}
	if head[0] != version {
		return nil, &FrameError{r.number, fmt.Sprintf("it has version %d, and this program reads %d", head[0], version), nil}
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxFrame {
		return nil, &FrameError{r.number, fmt.Sprintf("its %d bytes are more than %d", size, maxFrame), nil}
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(r.from, content); err != nil {
		return nil, &FrameError{r.number, fmt.Sprintf("it ends before its %d bytes do", size), unexpected(err)}
	}
	if crc32.Checksum(content, castagnoli) != binary.BigEndian.Uint32(head[5:]) {
		return nil, &FrameError{r.number, "its checksum is wrong", nil}
	}
	x, err := decode(content)
	if err != nil {
		return nil, &FrameError{r.number, "its content is damaged", err}
	}
	return x, nil
}

// unexpected returns the error of an end within a frame.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// content is what of a frame is still to be decoded, and the first error.
type content struct {
	rest []byte
	err  error
}

// decode returns the exchange of a frame's content. Its bodies alias the content.
func decode(b []byte) (*Exchange, error) {
	c := &content{rest: b}
	x := &Exchange{Target: c.text(), Request: c.body(), Answer: c.body(), Status: int(c.number())}
	x.Begin = time.Unix(0, c.number())
	x.Duration = time.Duration(c.number())
	x.Cut = c.bool()
	if c.err == nil && len(c.rest) > 0 {
		c.err = fmt.Errorf("%d bytes follow it", len(c.rest))
	}
	return x, c.err
}

var errShort = errors.New("it is too short")

// take returns the next n bytes; nil after an error.
func (c *content) take(n uint64) []byte {
	if c.err == nil && n > uint64(len(c.rest)) {
		c.err = errShort
	}
	if c.err != nil {
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

// skip leaves out the n bytes of a varint; n ≤ 0 is what encoding/binary returns for a bad one.
func (c *content) skip(n int) {
	if n <= 0 && c.err == nil {
		c.err = errors.New("a number of it is damaged")
	}
	c.take(uint64(max(n, 0)))
}

func (c *content) number() int64 {
	v, n := binary.Varint(c.rest)
	c.skip(n)
	return v
}

func (c *content) length() uint64 {
	v, n := binary.Uvarint(c.rest)
	c.skip(n)
	return v
}

func (c *content) text() string { return string(c.take(c.length())) }

func (c *content) bool() bool {
	b := c.take(1)
	return len(b) == 1 && b[0] == 1
}

func (c *content) body() Body {
	b := Body{Encoding: c.text(), Size: c.number()}
	if !c.bool() {
		return b
	}
	if b.Bytes = c.take(c.length()); b.Bytes == nil {
		b.Bytes = []byte{}
	}
	return b
}
