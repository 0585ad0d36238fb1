package dynamo

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// maxBody is the largest body of a request, in bytes, also after decompression.
const maxBody = 16 << 20

var (
	errTooLarge = &wire.Error{Code: "RequestEntityTooLarge"}
	// errUnreadable is the service's answer to a body that cannot be decompressed.
	errUnreadable = &wire.Error{Code: "InternalServerError"}
)

// readBody returns the body of a request, decompressed. Source of what the service takes:
// https://docs.aws.amazon.com/sdkref/latest/guide/feature-compression.html and
// scylladb/scylladb, test/alternator/test_compressed_request.py.
func readBody(r *http.Request) ([]byte, *wire.Error) {
	switch r.Header.Get("Content-Encoding") {
	case "", "identity":
		return readPlain(r)
	case "gzip":
		body, err := gunzip(bufio.NewReader(r.Body))
		return body, unreadable(err)
	case "deflate":
		z, err := zlib.NewReader(r.Body)
		if err != nil {
			return nil, errUnreadable
		}
		body, err := readLimited(z, maxBody)
		return body, unreadable(err)
	}
	return nil, errUnreadable
}

// unreadable returns the answer to an error of decompression.
func unreadable(err error) *wire.Error {
	if err != nil {
		return errUnreadable
	}
	return nil
}

// readPlain returns a body that is not compressed.
func readPlain(r *http.Request) ([]byte, *wire.Error) {
	if n := r.ContentLength; n >= 0 && n <= maxBody {
		body := make([]byte, n)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, errTooLarge
		}
		return body, nil
	}
	body, err := readLimited(r.Body, maxBody)
	if err != nil {
		return nil, errTooLarge
	}
	return body, nil
}

var errLimit = errors.New("the body is too large")

// readLimited reads at most limit bytes; more are an error.
func readLimited(r io.Reader, limit int) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(body) > limit {
		err = errLimit
	}
	return body, err
}

// gunzip returns what the members of a gzip file hold together. Like the service it ignores what
// follows them.
func gunzip(r *bufio.Reader) ([]byte, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	var body []byte
	for {
		z.Multistream(false)
		part, err := readLimited(z, maxBody-len(body))
		if err != nil {
			return nil, err
		}
		body = append(body, part...)
		if more := z.Reset(r) == nil; !more {
			return body, nil
		}
	}
}
