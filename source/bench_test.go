package source

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// pageOf is a full page: n MODIFY records of fifteen attributes, 1 KB new and 1 KB old image, 2.4
// KB of JSON each.
func pageOf(n int, next string) []byte {
	image := func(v int) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"pk":{"S":"product#%06d"},"sk":{"S":"variant#%04d"},"name":{"S":"A fine and sturdy thing"},`+
			`"price":{"N":"12.50"},"stock":{"N":"%d"},"active":{"BOOL":true},"none":{"NULL":true},"tags":{"SS":["a","b","c"]},`+
			`"bin":{"B":"AAECAwQFBgcICQ=="},"sizes":{"NS":["1","2","3.5"]},"list":{"L":[{"S":"x"},{"N":"1"},{"M":{"deep":{`+
			`"S":"y"}}}]},"dims":{"M":{"w":{"N":"10"},"h":{"N":"20"},"unit":{"S":"cm"}}}`, v%977, v%13, v)
		for i := range 3 {
			fmt.Fprintf(&b, `,"text%d":{"S":"%s"}`, i, strings.Repeat("lorem ipsum ", 15))
		}
		return b.String() + "}"
	}
	var b strings.Builder
	b.WriteString(`{"Records":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":1.7e9,"Keys":{"pk":{`+
			`"S":"product#%06d"},"sk":{"S":"variant#%04d"}},"NewImage":%s,"OldImage":%s,"SequenceNumber":"%s","SizeBytes":2100,`+
			`"StreamViewType":"NEW_AND_OLD_IMAGES"},"eventID":"%032x","eventName":"MODIFY","eventSource":"aws:dynamodb",`+
			`"eventVersion":"1.1"}`,
			i%977, i%13, image(i+1), image(i), seq(i), i)
	}
	fmt.Fprintf(&b, `],"NextShardIterator":%q}`, next)
	return []byte(strings.ReplaceAll(b.String(), "1.7e9", "1700000000"))
}

// canned replies with the same page for ever.
func canned(page []byte) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body := page
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetShardIterator") {
			body = []byte(`{"ShardIterator":"it"}`)
		}
		rw.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = rw.Write(body)
	}
}

var benchSchema = change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'},
	Sort: &change.KeyAttr{Name: "sk", Type: 'S'}}

// BenchmarkReadPage reads full pages in memory: the SDK's call, the scan, versions and key hashes.
func BenchmarkReadPage(b *testing.B) {
	const records = 430
	page := pageOf(records, "next")
	s := open(b, canned(page), func(o *Options) { o.ReadsPerShard = 1e9; o.HTTPClient = &cannedClient{page: page} })
	st := start("a", change.Position{})
	st.Schema = benchSchema
	r := s.NewReader(st)
	defer r.Close()
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	cpu := cpuTime(b)
	for b.Loop() {
		p, err := r.Next(b.Context())
		if err != nil || len(p.Records) != records {
			b.Fatal(err)
		}
		p.Release()
		r.lastRead = "" // the same page again
	}
	b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N*records), "cpu-ns/record")
}

// cannedClient is the cheapest transport there can be.
type cannedClient struct{ page []byte }

func (c *cannedClient) Do(r *http.Request) (*http.Response, error) {
	body := c.page
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "GetShardIterator") {
		body = []byte(`{"ShardIterator":"it"}`)
	}
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)), Request: r,
		Header: http.Header{"Date": {"Tue, 14 Nov 2023 22:13:20 GMT"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// BenchmarkStamp is the part of versions and key hashes.
func BenchmarkStamp(b *testing.B) {
	recs, _, err := change.ScanPage(pageOf(430, "x"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p := Page{Page: change.Page{Records: recs}}
		if _, err := p.stampRecords(&Start{Schema: benchSchema}, 0, ""); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(recs)), "ns/record")
}

// BenchmarkIdleShards drives a thousand idle shards by a pool over loopback, at the default idle
// poll. It reports the share of one core and the memory of a shard; the server is in the same
// process and counts.
func BenchmarkIdleShards(b *testing.B) {
	const shards = 1000
	server := httptest.NewServer(canned([]byte(`{"Records":[],"NextShardIterator":"` + strings.Repeat("i", 300) + `"}`)))
	defer server.Close()
	s := open(b, server.URL)
	pool := s.NewPool()
	before := liveBytes()
	for i := range shards {
		pool.Add(s.NewReader(start(shardID(i), after(i))))
	}
	out := make(chan Event)
	go func() { _ = pool.Run(b.Context(), out) }()
	take := func(n int) {
		for range n {
			e := <-out
			e.Page.Release()
		}
	}
	take(12 * shards) // until all have slowed down
	memory := liveBytes() - before
	begin, cpu := time.Now(), cpuTime(b)
	pages := 0
	for b.Loop() {
		take(100)
		pages += 100
	}
	b.ReportMetric(float64(memory)/shards, "B/shard")
	b.ReportMetric(100*(cpuTime(b)-cpu).Seconds()/time.Since(begin).Seconds(), "%core")
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(pages), "cpu-µs/poll")
}

// liveBytes returns the bytes that live, stacks included.
func liveBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
