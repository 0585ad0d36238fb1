package sandbox_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// BenchmarkScanHTTP scans 100,000 items of 1 KB over loopback, page by page in eight segments;
// client and server share the processors.
func BenchmarkScanHTTP(b *testing.B) {
	s := sandbox.Test(b, sandbox.Options{NoLedger: true, NoBigtable: true, NoNATS: true})
	if _, err := s.Call(b.Context(), "CreateTable", `{"TableName":"Bench","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`); err != nil {
		b.Fatal(err)
	}
	body := strings.Repeat("v", 60)
	var rest strings.Builder
	for i := range 14 {
		fmt.Fprintf(&rest, `,"a%d":{"S":"%s"}`, i, body)
	}
	if err := s.DynamoDB.Fill("Bench", func(yield func([]byte) bool) {
		for i := 0; i < 100_000 && yield(fmt.Appendf(nil, `{"pk":{"S":"item-%d"}%s}`, i, rest.String())); i++ {
		}
	}); err != nil {
		b.Fatal(err)
	}
	var page bytes.Buffer
	read, segment, start := 0, 0, ""
	b.ResetTimer()
	for b.Loop() {
		raw(b, s.Endpoint(), "DynamoDB_20120810.Scan", fmt.Sprintf(`{"TableName":"Bench","ConsistentRead":true,
			"ReturnConsumedCapacity":"TOTAL","Segment":%d,"TotalSegments":8%s}`, segment, start), &page)
		read += bytes.Count(page.Bytes(), []byte(`"a0"`))
		_, key, more := bytes.Cut(page.Bytes(), []byte(`"LastEvaluatedKey":`))
		if start = ""; more {
			start = `,"ExclusiveStartKey":` + string(key[:bytes.Index(key, []byte("}}"))+2])
		} else {
			segment = (segment + 1) % 8
		}
	}
	b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "items/s")
}

// BenchmarkFill puts a million items of 250 bytes, and reports the memory that each takes.
func BenchmarkFill(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		s := sandbox.Test(b, sandbox.Options{NoBigtable: true, NoNATS: true})
		if _, err := s.Call(b.Context(), "CreateTable", `{"TableName":"Bench","BillingMode":"PAY_PER_REQUEST",
			"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
			"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`); err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&before)
		if err := s.DynamoDB.Fill("Bench", func(yield func([]byte) bool) {
			var json []byte
			for i := 0; i < 1_000_000; i++ {
				json = fmt.Appendf(json[:0], `{"pk":{"S":"item-%d"},"body":{"S":"%0200d"}}`, i, i)
				if !yield(json) {
					return
				}
			}
		}); err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "B/item")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/million")
}
