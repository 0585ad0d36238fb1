package dynamo_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"
)

// post sends a body with a Content-Encoding and returns the status.
func (r *rig) post(op, encoding string, body []byte) int {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for name, value := range map[string]string{"X-Amz-Target": "DynamoDB_20120810." + op, "X-Amz-Date": "20260101T000000Z",
		"Content-Type": "application/x-amz-json-1.0", "Content-Encoding": encoding, "Authorization": "AWS4-HMAC-SHA256 " +
			"Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

// compressed returns a text as a compressing writer writes it.
func compressed(t *testing.T, w io.WriteCloser, out *bytes.Buffer, text string) []byte {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t *testing.T, text string) []byte {
	var b bytes.Buffer
	return compressed(t, gzip.NewWriter(&b), &b, text)
}

// TestCompressedRequests: source: scylladb/scylladb, test/alternator/test_compressed_request.py.
func TestCompressedRequests(t *testing.T) {
	r := newRig(t)
	r.table("ttt", "")
	item := quotes(`{'TableName':'ttt','Item':{'p':{'S':'NAME'}}}`)
	var deflated, deflatedWide bytes.Buffer
	whole := gzipped(t, strings.Replace(item, "NAME", "short", 1))
	wide := item[:len(item)-1] + strings.Repeat(" ", 20<<20) + item[len(item)-1:]
	fits := strings.Replace(item, "NAME", "largest", 1)
	fits += strings.Repeat(" ", 16<<20-len(fits))
	for _, c := range []struct {
		name, encoding string
		body           []byte
		want           int
	}{
		{"gzip", "gzip", gzipped(t, strings.Replace(item, "NAME", "gzip", 1)), http.StatusOK},
		{"two members", "gzip", append(gzipped(t, item[:10]), gzipped(t, strings.Replace(item[10:], "NAME", "two members",
			1))...), http.StatusOK},
		{"junk", "gzip", append(gzipped(t, strings.Replace(item, "NAME", "junk", 1)), "junk"...), http.StatusOK},
		{"deflate", "deflate", compressed(t, zlib.NewWriter(&deflated), &deflated, strings.Replace(item, "NAME", "deflate",
			1)), http.StatusOK},
		{"plain as gzip", "gzip", []byte(item), http.StatusInternalServerError},
		{"plain as deflate", "deflate", []byte(item), http.StatusInternalServerError},
		{"short", "gzip", whole[:len(whole)-1], http.StatusInternalServerError},
		{"empty", "gzip", nil, http.StatusInternalServerError},
		{"large", "gzip", gzipped(t, wide), http.StatusInternalServerError},
		{"large in two members", "gzip", append(gzipped(t, wide[:10<<20]), gzipped(t, wide[10<<20:])...),
			http.StatusInternalServerError},
		{"large by deflate", "deflate", compressed(t, zlib.NewWriter(&deflatedWide), &deflatedWide, wide),
			http.StatusInternalServerError},
		{"large as it is", "", []byte(wide), http.StatusRequestEntityTooLarge},
		{"largest", "gzip", gzipped(t, fits), http.StatusOK},
		{"garbage", "garbage", []byte(item), http.StatusInternalServerError},
	} {
		if got := r.post("PutItem", c.encoding, c.body); got != c.want {
			t.Errorf("%s: status %d, want %d", c.name, got, c.want)
		}
		if stored := r.item("ttt", c.name) != "null"; stored != (c.want == http.StatusOK) {
			t.Errorf("%s: stored %t", c.name, stored)
		}
	}
}
