package tmpl

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/transform/lang"
)

// TestBuckets: many values give one text, and what is no value of the kind is refused.
func TestBuckets(t *testing.T) {
	for _, tt := range []struct{ name, arg, in, want string }{
		{"day", "", "0", "1970-01-01"},
		{"day", "", "1764547199999", "2025-11-30"},
		{"day", "", "1764547200000", "2025-12-01"},
		{"day", "", "253402300799999", "9999-12-31"},
		{"day", "", "253402300800000", "refused"},
		{"day", "", "-1", "refused"},
		{"day", "", "1.5", "refused"},
		{"day", "", "2025-11-30", "refused"},
		{"hour", "", "1764547199999", "2025-11-30T23"},
		{"div", "1000", "999", "0"},
		{"div", "1000", "1000", "1"},
		{"div", "1000", "9223372036854775807", "9223372036854775"},
		{"div", "1000", "9223372036854775808", "refused"},
		{"div", "7", "007", "refused"},
		{"left", "2", "ab17", "ab"},
		{"left", "2", "a", "a"},
		{"left", "2", "", ""},
		{"left", "2", "日本語", "日本"},
		{"left", "2", "a\xff", "refused"},
	} {
		f := lang.Filter{Name: tt.name}
		if tt.arg != "" {
			f.Args = []string{tt.arg}
		}
		s, err := compileFilter(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.apply([]byte("x"), tt.in)
		if err != nil {
			got = []byte("xrefused")
		}
		if string(got) != "x"+tt.want || s.injective {
			t.Errorf("%s of %q: %s, want %s", s.src, tt.in, got, tt.want)
		}
	}
	for _, arg := range []string{"0", "1"} {
		if _, err := compileFilter(lang.Filter{Name: "div", Args: []string{arg}}, nil); err == nil ||
			!strings.Contains(err.Error(), "div") {
			t.Errorf("div(%s): %v", arg, err)
		}
	}
}
