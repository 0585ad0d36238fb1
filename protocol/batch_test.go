package protocol

import "testing"

type job struct{ key string }

func (j *job) Hash() uint64 { return 7 }
func (j *job) Key() []byte  { return []byte(j.key) }

// TestItemsThatShareAHashAreNotUnited: a lane collects changes by the hash of their keys, and two
// keys may share one.
func TestItemsThatShareAHashAreNotUnited(t *testing.T) {
	a, b := `{"pk":{"S":"a"}}`, `{"pk":{"S":"b"}}`
	for _, tt := range []struct {
		keys []string
		want int
	}{{[]string{a}, 1}, {[]string{a, a, a}, 3}, {[]string{a, b}, 1}, {[]string{a, a, b, a}, 2}} {
		var jobs []*job
		for _, key := range tt.keys {
			jobs = append(jobs, &job{key})
		}
		if got := countSameItem(jobs); got != tt.want {
			t.Errorf("%v: %d changes are taken for one item, want %d", tt.keys, got, tt.want)
		}
	}
}
