package front

import (
	"bytes"
	"errors"
	"io"
)

const (
	// maxHead is the longest head of a request or an answer, in bytes. AWS's own limit is lower.
	maxHead = 64 << 10
	// firstBuffer is the size of a reader's buffer, which holds most requests and answers whole.
	// Each connection has two.
	firstBuffer = 16 << 10
)

var (
	errLongHead  = errors.New("the head is too long")
	errMalformed = errors.New("the head is malformed")
)

// reader reads heads as a whole, and bodies in the pieces in which they come.
type reader struct {
	from io.Reader
	buf  []byte
	r, w int
}

// buffered returns what was read and not consumed. It is valid until the next fill.
func (r *reader) buffered() []byte { return r.buf[r.r:r.w] }

// consume removes the first n bytes of what is buffered.
func (r *reader) consume(n int) {
	if r.r += n; r.r == r.w {
		r.r, r.w = 0, 0
	}
}

// fill waits for more bytes and reads them. Only heads make the buffer grow, because a body is
// consumed before more of it is read.
func (r *reader) fill() error {
	switch {
	case r.w < len(r.buf):
	case r.r > 0:
		r.r, r.w = 0, copy(r.buf, r.buffered())
	case r.buf == nil:
		r.buf = make([]byte, firstBuffer)
	default:
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	for {
		n, err := r.from.Read(r.buf[r.w:])
		r.w += n
		if n > 0 {
			return nil // an error comes again with the next call
		}
		if err != nil {
			return err
		}
	}
}

// wait waits until something is buffered.
func (r *reader) wait() error {
	if r.r < r.w {
		return nil
	}
	return r.fill()
}

var (
	endOfHead = []byte("\r\n\r\n")
	bareLines = []byte("\n\n")
)

// head waits for a whole head and returns its length, with the empty line behind it. It consumes
// nothing.
func (r *reader) head() (int, error) {
	searched := 0
	for {
		b := r.buffered()
		end := bytes.Index(b[searched:], endOfHead)
		before := b[searched:]
		if end >= 0 {
			before = before[:end]
		}
		switch {
		case bytes.Contains(before, bareLines):
			return 0, errMalformed
		case end >= 0 && searched+end+len(endOfHead) > maxHead, end < 0 && len(b) > maxHead:
			return 0, errLongHead
		case end >= 0:
			return searched + end + len(endOfHead), nil
		}
		searched = max(0, len(b)-len(endOfHead)+1)
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
}
