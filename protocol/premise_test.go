package protocol

import (
	"strings"
	"testing"
)

// A premise that could not be read makes nothing red and stops nothing; one that is broken does,
// and one that is unsafe stops writing.
func TestPremisesSayWhatStopsWriting(t *testing.T) {
	unread := Premise{Code: "lifecycle", What: "bucket b", Unsafe: true, Unread: "denied"}
	odd := Premise{Code: "max_age", What: "stream S", Found: "1h", Wanted: "0s", Mend: "nats stream edit S"}
	unsafe := Premise{Code: "storage", What: "stream S", Found: "memory", Wanted: "file", Unsafe: true}
	for _, x := range []struct {
		all    Premises
		broken int
		unsafe bool
	}{
		{nil, 0, false}, {Premises{unread}, 0, false}, {Premises{unread, odd}, 1, false},
		{Premises{unread, odd, unsafe}, 2, true},
	} {
		if got := x.all.Unsafe(); len(x.all.Broken()) != x.broken || (got != nil) != x.unsafe {
			t.Errorf("%v: %v, %v", x.all, x.all.Broken(), got)
		}
	}
	if got := (Premises{odd, unsafe}).Unsafe(); got.Code != "storage" {
		t.Error(got)
	}
	if text := odd.Text(); !strings.Contains(text, "1h") || !strings.Contains(text, "`nats stream edit S`") {
		t.Error(text)
	}
}
