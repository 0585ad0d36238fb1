package render

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// screen is what was written, for several goroutines.
type screen struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// TestLinesAreNotLostBesideBars: before the first bar, while bars come and go, and after the last
// one.
func TestLinesAreNotLostBesideBars(t *testing.T) {
	s := &screen{}
	b := NewBars(s)
	say := func(line string) {
		t.Helper()
		if n, err := b.Write([]byte(line + "\n")); err != nil || n != len(line)+1 {
			t.Fatalf("write %s: %d, %v", line, n, err)
		}
	}
	say("before")
	b.Show([]Step{{"copying Orders", 12.5, "3 items"}, {"healing Carts", 150, "more than expected"}})
	say("during")
	b.Show([]Step{{"copying Orders", 50, "9 items"}})
	say("with one")
	b.Show(nil)
	say("between")
	b.Show([]Step{{"copying Orders", 99, "10 items"}})
	b.Close()
	say("after")
	b.Close()
	for _, line := range []string{"before", "during", "with one", "between", "after"} {
		if !strings.Contains(s.String(), line+"\n") {
			t.Errorf("line %q is lost in %q", line, s.String())
		}
	}
}
