package restore

import (
	"testing"
	"time"
)

func TestTimesAreReadInEachForm(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-05-01": "2026-05-01T00:00:00Z", "2026-05-01T07": "2026-05-01T07:00:00Z",
		"2026-05-01T07:15:00+02:00": "2026-05-01T05:15:00Z", "36h": "2026-05-03T00:30:00Z", "30d": "2026-04-04T12:30:00Z",
	} {
		if r, err := ParseRange(text, "", now); err != nil || r.From.Format(time.RFC3339) != want {
			t.Errorf("%s: %s, %v, want %s", text, r.From.Format(time.RFC3339), err, want)
		}
	}
	for _, wrong := range []string{"-3h", "0d", "d", "1.5d", "yesterday", "-2d", "70000d"} {
		if r, err := ParseRange(wrong, "", now); err == nil {
			t.Errorf("%s is read as %s", wrong, r.From)
		}
	}
	if _, err := ParseRange("2026-05-02", "2026-05-01", now); err == nil {
		t.Error("a range that ends before it begins is taken")
	}
}
