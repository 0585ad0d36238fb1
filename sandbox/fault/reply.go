package fault

import (
	"bytes"
	"compress/gzip"
	"hash/crc32"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
)

// afterRequest is how long the head of a stalled reply waits. If it reached the client before the
// end of the request was sent, the AWS SDK for Go would drop the connection.
const afterRequest = 2 * time.Millisecond

// recorder keeps a reply, so that it can be compressed, cut, stalled or dropped.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (rec *recorder) Header() http.Header { return rec.header }

func (rec *recorder) WriteHeader(status int) { rec.status = status }

func (rec *recorder) Write(p []byte) (int, error) {
	rec.body = append(rec.body, p...)
	return len(p), nil
}

// send sends the reply according to the plan. It panics with http.ErrAbortHandler to close the
// connection.
func (rec *recorder) send(w http.ResponseWriter, r *http.Request, p *plan) {
	if p.gzip {
		rec.compress()
	}
	switch p.reply {
	case Reset:
		reset(w)
	case Cut:
		rec.half(w, p)
		panic(http.ErrAbortHandler) // closes the connection: the rest never comes
	case Stall:
		if clock.Pause(r.Context(), afterRequest) != nil {
			panic(http.ErrAbortHandler)
		}
		rest := rec.half(w, p)
		if clock.Pause(r.Context(), p.stall) != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(rest) // fails only when the client has disconnected
	case Truncate:
		rec.body = rec.body[:len(rec.body)/2]
		rec.deliver(w, p)
	default:
		rec.deliver(w, p)
	}
}

// compress replaces the body by its gzip form.
func (rec *recorder) compress() {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(rec.body) // a bytes.Buffer never fails
	_ = z.Close()
	rec.body = out.Bytes()
	rec.header.Set("Content-Encoding", "gzip")
}

// head writes the headers, with the length and checksum of the whole body.
func (rec *recorder) head(w http.ResponseWriter, p *plan) {
	h := w.Header()
	for k, v := range rec.header {
		h[k] = v
	}
	h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(rec.body)), 10))
	h.Set("Content-Length", strconv.Itoa(len(rec.body)))
	switch {
	case p.noDate:
		h["Date"] = nil // otherwise net/http adds one
	case !p.date.IsZero():
		h.Set("Date", p.date.UTC().Format(http.TimeFormat))
	}
	if rec.status == 0 {
		rec.status = http.StatusOK
	}
	w.WriteHeader(rec.status)
}

// deliver sends the whole reply.
func (rec *recorder) deliver(w http.ResponseWriter, p *plan) {
	rec.head(w, p)
	_, _ = w.Write(rec.body) // fails only when the client has disconnected
}

// half sends the headers and half of the body, and returns the rest.
func (rec *recorder) half(w http.ResponseWriter, p *plan) []byte {
	rec.head(w, p)
	cut := len(rec.body) / 2
	_, _ = w.Write(rec.body[:cut])
	_ = http.NewResponseController(w).Flush()
	return rec.body[cut:]
}

// reset closes the connection with a TCP reset.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
