package protocol

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// TestExportThatTheStreamDoesNotJoinIsRefused: one that is older than the stream's cover, one from
// before the end of a gap, healed or not, and one so old that deletes since then are forgotten.
func TestExportThatTheStreamDoesNotJoinIsRefused(t *testing.T) {
	const hour, now = change.Millis(3600 * 1000), change.Millis(1_700_000_000_000)
	for _, c := range []struct {
		name                 string
		at, cover, gapsUntil change.Millis
		why                  string
	}{
		{"younger than the cover", now - 2*hour, now - 23*hour, 0, ""},
		{"the cover begins within the margin", now - 2*hour, now - 2*hour - 30_000, 0, "could be missing"},
		{"older than the cover", now - 24*hour, now - 23*hour, 0, "could be missing"},
		{"Sunday's export, Monday's gap", now - 48*hour, now - 60*hour, now - 30*hour, "a gap until"},
		{"a gap that ended before", now - 2*hour, now - 23*hour, now - 3*hour, ""},
		{"deletes are forgotten", now - 6*24*hour, now - 7*24*hour, 0, "not all remembered"},
	} {
		why := CheckExport(c.at, c.cover, c.gapsUntil, now)
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// TestRefusedExportNamesTheBoundThatCounts: just before it the export is refused, by a sentence
// that names a later time than the export shows; from it on the export is taken.
func TestRefusedExportNamesTheBoundThatCounts(t *testing.T) {
	const cover, bound = change.Millis(1_700_000_000_100), change.Millis(1_700_000_061_000)
	if why := CheckExport(bound, cover, 0, bound); why != "" {
		t.Errorf("an export of the bound: %s", why)
	}
	const want = "the export shows 2023-11-14T22:14:20Z, and beside this stream it must show 2023-11-14T22:14:21Z or later"
	if why := CheckExport(bound-1000, cover, 0, bound); !strings.HasPrefix(why, want) {
		t.Errorf("%q, want %q", why, want)
	}
}
