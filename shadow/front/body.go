package front

import (
	"bytes"
	"errors"
)

// body finds the end of a body in the bytes of a connection.
type body struct {
	state state
	left  int64 // bytes that follow of the body or of a chunk
	count int   // digits of a chunk's size; bytes of its extension, or of the trailers
}

// state is what comes next.
type state uint8

const (
	ended state = iota
	sized
	untilClose
	chunkSize
	chunkExtension
	chunkSizeEnd // the LF behind a size
	chunkData
	chunkDataEnd // the CR behind data
	chunkNext    // the LF behind data
	trailerBegin
	trailer
	trailerEnd // the LF behind a trailer
	lastEnd    // the LF behind everything
)

// behind has what follows a state that may last for many bytes.
var behind = [...]state{sized: ended, chunkData: chunkDataEnd, chunkExtension: chunkSizeEnd, trailer: trailerEnd}

// requestBody returns where the body of a request ends. Without a length there is none.
func requestBody(h *head) body {
	switch {
	case h.chunked:
		return body{state: chunkSize}
	case h.length > 0:
		return body{state: sized, left: h.length}
	}
	return body{}
}

// answerBody returns where the body of an answer ends.
//
// Source: RFC 9112, section 6.3.
func answerBody(h *head, toHead bool) body {
	switch {
	case toHead, h.status == 204, h.status == 304, h.status < 200:
		return body{}
	case h.chunked:
		return body{state: chunkSize}
	case h.length < 0:
		return body{state: untilClose}
	case h.length > 0:
		return body{state: sized, left: h.length}
	}
	return body{}
}

var errChunk = errors.New("a chunk is malformed")

// take returns how many of the next bytes belong to the body, and gives what they hold to c: all of
// them, or the data of chunks.
func (b *body) take(p []byte, c *capture) (n int, err error) {
	for n < len(p) && b.state != ended {
		switch b.state {
		case sized, chunkData:
			size := int(min(b.left, int64(len(p)-n)))
			c.add(p[n : n+size])
			n += size
			if b.left -= int64(size); b.left == 0 {
				b.state = behind[b.state]
			}
		case untilClose:
			c.add(p[n:])
			n = len(p)
		default:
			if !b.step(p[n]) {
				return n, errChunk
			}
			n++
		}
	}
	return n, nil
}

// step takes one byte between the data of chunks. It reports whether the byte may stand there.
//
// Source: RFC 9112, section 7.1.
func (b *body) step(c byte) bool {
	switch b.state {
	case chunkSize:
		return b.size(c)
	case chunkExtension, trailer:
		if c == '\r' {
			b.state = behind[b.state]
			return true
		}
		b.count++
		return c != '\n' && b.count <= maxHead
	case trailerBegin:
		b.state = trailer
		if c == '\r' {
			b.state = lastEnd
		}
		return c != '\n'
	case chunkDataEnd:
		b.state = chunkNext
		return c == '\r'
	case chunkSizeEnd:
		if b.state = chunkData; b.left == 0 {
			b.state, b.count = trailerBegin, 0
		}
	case chunkNext:
		b.state, b.count = chunkSize, 0
	case trailerEnd:
		b.state = trailerBegin
	case lastEnd:
		b.state = ended
	}
	return c == '\n'
}

// size takes one byte of the line with a chunk's size.
func (b *body) size(c byte) bool {
	const digits = "0123456789abcdef"
	if c >= 'A' && c <= 'F' {
		c += 'a' - 'A'
	}
	if digit := bytes.IndexByte([]byte(digits), c); digit >= 0 {
		b.left = b.left<<4 | int64(digit)
		b.count++
		return b.count <= 15 // more do not fit an int64
	}
	if b.count == 0 {
		return false
	}
	switch c {
	case '\r':
		b.state = chunkSizeEnd
		return true
	case ';', ' ', '\t':
		b.state = chunkExtension
		return true
	}
	return false
}
