package front

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"testing"
	"testing/iotest"
)

// FuzzChunks: a body that this package accepts is what net/http reads, and ends where it ends,
// whatever the pieces in which it comes.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("3\r\nabc\r\n0\r\n\r\nrest"), 1)
	f.Add([]byte("3;x=y\r\nabc\r\nA \r\n0123456789\r\n00\r\nX: y\r\n\r\n"), 7)
	f.Add([]byte("fffffffffffffff\r\nabc"), 2)
	f.Add([]byte("1\n\na\r\n0\r\n\r\n"), 2)
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		queue := newQueue(&Options{Share: 1, Memory: 1 << 30})
		b, content := body{state: chunkSize}, capture{taking: true, queue: queue, bytes: []byte{}}
		piece = max(1, piece%100)
		length := 0
		for rest := text; len(rest) > 0 && b.state != ended; {
			n, err := b.take(rest[:min(piece, len(rest))], &content)
			if err != nil {
				return
			}
			length += n
			rest = rest[n:]
		}
		if b.state != ended || content.size > 1<<20 {
			return
		}
		behind := bufio.NewReader(bytes.NewReader(text))
		want, err := io.ReadAll(httputil.NewChunkedReader(behind))
		if err != nil || !bytes.Equal(want, content.bytes) {
			t.Errorf("%q: got %q, want %q (%v)", text, content.bytes, want, err)
		}
		if !bytes.HasSuffix(text[:length], []byte("\r\n")) {
			t.Errorf("%q ends in %q", text, text[:length])
		}
	})
}

// FuzzHead: a head that this package accepts, net/http accepts with the same meaning.
func FuzzHead(f *testing.F) {
	f.Add([]byte(request("")))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"))
	f.Add([]byte("GET /?a=b HTTP/1.0\r\nContent-Length: 3\r\ncontent-length: 3\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: x\r\n a\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &reader{from: iotest.OneByteReader(bytes.NewReader(text))}
		n, err := r.head()
		var h head
		if err != nil || h.parseRequest(r.buffered()[:n]) != nil {
			return
		}
		whole := &reader{from: bytes.NewReader(text)}
		if again, err := whole.head(); err != nil || again != n {
			t.Fatalf("%q: the head has %d or %d bytes (%v)", text, n, again, err)
		}
		got, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			return // the service refuses it
		}
		want := got.ContentLength
		if string(h.method) != got.Method || h.chunked != (len(got.TransferEncoding) > 0) ||
			!h.chunked && max(h.length, 0) != max(want, 0) {
			t.Errorf("%q: got %s of %d bytes, chunked %v; net/http reads %s of %d bytes, %v", text, h.method, h.length,
				h.chunked, got.Method, want, got.TransferEncoding)
		}
		for i := range h.fields {
			name := http.CanonicalHeaderKey(string(h.fields[i].name))
			if slices.Contains([]string{"Host", "Transfer-Encoding", "Trailer", "Content-Length"}, name) {
				continue // net/http moves them
			}
			if _, ok := got.Header[name]; !ok {
				t.Errorf("%q: net/http reads no field %q", text, name)
			}
		}
	})
}
