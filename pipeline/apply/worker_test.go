package apply

import (
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestItemsThatShareAHashAreNotUnited: a lane collects changes by the hash of their keys, and two keys may share one.
func TestItemsThatShareAHashAreNotUnited(t *testing.T) {
	of := func(key string) *job { return &job{c: change.Change{KeyHash: 7, Keys: []byte(key)}} }
	a, b := `{"pk":{"S":"a"}}`, `{"pk":{"S":"b"}}`
	for _, tt := range []struct {
		keys []string
		want int
	}{{[]string{a}, 1}, {[]string{a, a, a}, 3}, {[]string{a, b}, 1}, {[]string{a, a, b, a}, 2}} {
		var jobs []*job
		for _, key := range tt.keys {
			jobs = append(jobs, of(key))
		}
		if got := countSameItem(jobs); got != tt.want {
			t.Errorf("%v: %d changes are taken for one item, want %d", tt.keys, got, tt.want)
		}
	}
}
