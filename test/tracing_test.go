package test

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// traces is a collector that keeps the spans that it is sent.
type traces struct {
	mu  sync.Mutex // covers all
	all []*tracepb.Span
}

// collectTraces serves a collector until the test ends, and returns its URL.
func (c *traces) collectTraces(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		b, err := io.ReadAll(body)
		var sent collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(b, &sent)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range sent.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				c.all = append(c.all, scope.GetSpans()...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// tree returns the names of the spans of a trace, each behind those of its parents, and how often
// each came.
func (c *traces) tree(trace string) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	byID := map[string]*tracepb.Span{}
	for _, s := range c.all {
		if hex.EncodeToString(s.GetTraceId()) == trace {
			byID[string(s.GetSpanId())] = s
		}
	}
	paths := map[string]int{}
	for _, s := range byID {
		path := s.GetName()
		for up := byID[string(s.GetParentSpanId())]; up != nil; up = byID[string(up.GetParentSpanId())] {
			path = up.GetName() + " > " + path
		}
		paths[path]++
	}
	return paths
}

// TestTraceOfAFrameLeadsFromTheReadToTheCalls: the trace of an entry has its hash as its id, one
// call that failed and the one that was sent again, and nothing of the item.
func TestTraceOfAFrameLeadsFromTheReadToTheCalls(t *testing.T) {
	w := newWorld(t, 271)
	var c traces
	w.tracing = fmt.Sprintf("{endpoint: %q, share: 1}", c.collectTraces(t))
	w.prepare("Orders")
	d := w.run()
	d.settle("Orders")
	w.Bigtable.Faults.RefuseRow([]byte("hats"), codes.Unavailable, 1)
	w.Put("Orders", "hats", "fedora", `"price":{"N":"1250"}`)
	d.settle("Orders")
	w.Equal("Orders")
	var entry struct{ Hash string }
	dump := w.ok("queue", "dump", "--json", "--kind", "change", "--limit", "1")
	if err := json.Unmarshal([]byte(dump), &entry); err != nil {
		t.Fatalf("%v: %s", err, dump)
	}
	d.stop() // sends the last spans
	got := c.tree(entry.Hash)
	for path, times := range map[string]int{
		"frame": 1, "frame > GetRecords": 1, "frame > append": 1, "frame > apply bigtable": 1,
		"frame > apply bigtable > CheckAndMutateRow": 2,
	} {
		if got[path] != times {
			t.Errorf("%d spans %q, want %d; the trace has %v", got[path], path, times, got)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all {
		if text := s.String(); strings.Contains(text, "fedora") || strings.Contains(text, "hats") || strings.Contains(text,
			"1250") {
			t.Errorf("a span has something of the item: %s", text)
		}
	}
}

// TestDaemonRunsWithoutItsCollector: spans that nobody takes are lost, and nothing else.
func TestDaemonRunsWithoutItsCollector(t *testing.T) {
	w := newWorld(t, 272)
	w.tracing = `{endpoint: "http://127.0.0.1:1", share: 1}`
	w.prepare("Orders")
	d := w.run()
	w.Put("Orders", "hats", "fedora", "")
	d.settle("Orders")
	w.Equal("Orders")
	d.stop()
}
