package source

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
)

// recorder keeps the requests that pass it.
type recorder struct {
	mu     sync.Mutex
	bodies map[string]string // by operation
}

// Do implements HTTPClient.
func (c *recorder) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.mu.Lock()
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.bodies[op] = string(body)
	c.mu.Unlock()
	return http.DefaultClient.Do(r)
}

// TestTablesOfOtherAccountsAreNamedByTheirARN in each call: the name alone is a table of the
// caller's account.
func TestTablesOfOtherAccountsAreNamedByTheirARN(t *testing.T) {
	home := newWorld(t)
	info := createTable(t, home.testSource, "Orders")
	for i := range 3 {
		home.put(t, "Orders", i)
	}
	calls := &recorder{bodies: map[string]string{}}
	s := open(t, home.Endpoint(), func(o *Options) {
		o.HTTPClient, o.ARNs = calls, map[string]string{"Orders": info.ARN}
	})
	there, err := s.Table(t.Context(), "Orders")
	if err != nil || there.ID != info.ID || there.Name != "Orders" {
		t.Fatalf("%+v, %v", there, err)
	}
	var keys [][]byte
	for page, err := range s.Scan(t.Context(), "Orders", 0, 1) {
		if err != nil {
			t.Fatal(err)
		}
		for range page.Items {
			keys = append(keys, []byte(`{"pk":{"S":"`+string(rune('0'+len(keys)))+`"},"n":{"N":"`+
				string(rune('0'+len(keys)))+`"}}`))
		}
	}
	got, err := s.ReadItems(t.Context(), "Orders", keys)
	if err != nil || len(got.Items) != 3 || got.Items[0] == nil || got.Items[2] == nil {
		t.Errorf("%d items, %v", len(got.Items), err)
	}
	if _, err := s.PointInTime(t.Context(), "Orders"); err != nil {
		t.Error(err)
	}
	if err := s.WriteHeartbeat(t.Context(), &there, "_tr#1"); err != nil {
		t.Error(err)
	}
	for _, op := range []string{
		"DescribeTable", "DescribeTimeToLive", "Scan", "BatchGetItem", "DescribeContinuousBackups", "PutItem",
	} {
		if body := calls.bodies[op]; !strings.Contains(body, `"`+info.ARN+`"`) || strings.Contains(body, `"Orders"`) {
			t.Errorf("%s is sent as %q, want the ARN", op, body)
		}
	}
	if _, err := s.Table(t.Context(), "Carts"); Classify(err) != failure.Gone {
		t.Errorf("a table without an ARN: %v", err)
	}
}
