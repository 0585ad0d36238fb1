package sandbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

// raw posts a request as a fast client does.
func raw(b *testing.B, url, target string, body string, into *bytes.Buffer) {
	b.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", target)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential=a/20261121/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	req.Header.Set("X-Amz-Date", "20261121T000000Z")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	into.Reset()
	if _, err := io.Copy(into, res.Body); err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d %v %.300s", target, res.StatusCode, err, into)
	}
}

// BenchmarkGetRecordsHTTP reads 1 MB pages of 2.4 KB records over loopback; client and
// server share the processors.
func BenchmarkGetRecordsHTTP(b *testing.B) {
	s := sandbox.Test(b, sandbox.Options{Partitions: 1, NoBigtable: true, NoNATS: true})
	arn, _ := s.Stream.Enable("Bench", "NEW_AND_OLD_IMAGES")
	img := fmt.Appendf(nil, `{"pk":{"S":"a"},"body":{"S":"%s"}}`, strings.Repeat("x", 1000))
	keys := []byte(`{"pk":{"S":"a"}}`)
	for range 20000 {
		s.Stream.Commit(stream.Change{Table: "Bench", Op: "MODIFY", Keys: keys, New: img, Old: img, PartitionKey: keys,
			ItemKey: keys, SizeBytes: 2100})
	}
	var page bytes.Buffer
	raw(b, s.Endpoint(), "DynamoDBStreams_20120810.GetShardIterator", fmt.Sprintf(
		`{"StreamArn":%q,"ShardId":%q,"ShardIteratorType":"TRIM_HORIZON"}`, arn, s.Stream.OpenShards("Bench")[0]), &page)
	var first struct{ ShardIterator string }
	if err := json.Unmarshal(page.Bytes(), &first); err != nil {
		b.Fatal(err)
	}
	mark, read, next := []byte(`"NextShardIterator":"`), 0, first.ShardIterator
	for b.Loop() {
		raw(b, s.Endpoint(), "DynamoDBStreams_20120810.GetRecords", `{"ShardIterator":"`+next+`"}`, &page)
		n := bytes.Count(page.Bytes(), []byte(`"eventID"`))
		read += n
		_, rest, _ := bytes.Cut(page.Bytes(), mark)
		next = string(rest[:bytes.IndexByte(rest, '"')])
		if n == 0 {
			next = first.ShardIterator
		}
	}
	b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "records/s")
}
