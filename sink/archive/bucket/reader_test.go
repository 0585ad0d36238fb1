package bucket

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// TestReadingTakesFewRequests: one for the end of an object, and not thousands for all of it.
func TestReadingTakesFewRequests(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		b, want := s.open(t, ""), random(6, 16<<20)
		if err := createBytes(t, b, "a", want); err != nil {
			t.Fatal(err)
		}
		r, err := b.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		s.between(nil)
		size := r.Size()
		for _, back := range []int64{8, 1000, 60_000} { // the magic, the length, the footer
			p := make([]byte, back)
			if _, err := r.ReadAt(p, size-back); err != nil || !bytes.Equal(p, want[size-back:]) {
				t.Fatalf("the last %d bytes: %v", back, err)
			}
		}
		if calls := s.between(nil); len(calls) != 1 {
			t.Errorf("%d requests for a footer", len(calls))
		}
		var columns [4][]byte // read side by side, as columns are
		for p := make([]byte, 5000); int64(len(columns[0])) < size/4; {
			for i := range columns {
				at := int64(i)*size/4 + int64(len(columns[i]))
				n, err := r.ReadAt(p[:min(5000, size/4-int64(len(columns[i])))], at)
				if err != nil {
					t.Fatal(err)
				}
				columns[i] = append(columns[i], p[:n]...)
			}
		}
		if !bytes.Equal(bytes.Join(columns[:], nil), want) {
			t.Error("read side by side: other bytes")
		}
		if calls := s.between(nil); len(calls) > 24 {
			t.Errorf("%d requests for 16 MB", len(calls))
		}
	})
}

// TestReadIsRepeated: a connection is cut in the middle of a reply, once.
func TestReadIsRepeated(t *testing.T) {
	services(t, func(t *testing.T, s *service) {
		b, want := s.open(t, ""), random(8, 100_000)
		if err := createBytes(t, b, "a", want); err != nil {
			t.Fatal(err)
		}
		r, err := b.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		var cut sync.Once
		s.between(func(w http.ResponseWriter, r *http.Request) bool {
			cut.Do(func() {
				whole := httptest.NewRecorder()
				s.next.ServeHTTP(whole, r)
				for key, values := range whole.Header() {
					w.Header()[key] = values
				}
				w.WriteHeader(whole.Code)
				_, _ = w.Write(whole.Body.Bytes()[:50_000])
				panic(http.ErrAbortHandler)
			})
			return false
		})
		got := make([]byte, len(want))
		if _, err := r.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
			t.Errorf("read: %v", err)
		}
		if calls := s.between(nil); len(calls) != 2 {
			t.Errorf("%d requests", len(calls))
		}
	})
}
