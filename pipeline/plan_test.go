package pipeline

import (
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/protocol"
)

// TestStartBesideABackfill: a scan needs the changes of the minutes before it, an export all that
// the stream has, and an archive, too. A later start would lose changes.
func TestStartBesideABackfill(t *testing.T) {
	const now = 1_700_000_000_000
	early := now - 5*60*1000
	at := func(ms int64) Start { return Start{At: time.UnixMilli(ms)} }
	for _, c := range []struct {
		name     string
		table    Table
		start    Start
		from     int
		mode     string
		backfill string
		refused  bool
	}{
		{"scan", Table{Backfill: Backfill{From: "scan"}}, Start{}, early, protocol.ModeBackfill, "scan", false},
		{"default", Table{}, Start{}, early, protocol.ModeBackfill, "scan", false},
		{"default, latest", Table{}, Start{Latest: true}, now, "latest", "", false},
		{"default, a minute ago", Table{}, at(now - 60_000), now - 60_000, at(now - 60_000).Mode(), "", false},
		{"export that is asked for", Table{Backfill: Backfill{From: "export", Bucket: "b"}}, Start{}, early,
			protocol.ModeBackfill, "export", false},
		{"export that exists", Table{Backfill: Backfill{From: "export", URL: "s3://b"}}, Start{}, 0, "trim_horizon",
			"export", false},
		{"archive", Table{Archive: Archive{On: true}, Backfill: Backfill{From: "scan"}}, Start{}, 0, "trim_horizon",
			"scan", false},
		{"none", Table{Backfill: Backfill{From: "none"}}, Start{}, 0, "trim_horizon", "", false},
		{"latest", Table{Backfill: Backfill{From: "scan"}}, Start{Latest: true}, 0, "", "", true},
		{"a minute ago", Table{Backfill: Backfill{From: "scan"}}, at(now - 60_000), 0, "", "", true},
		{"an hour ago", Table{Backfill: Backfill{From: "scan"}}, at(now - 3_600_000), now - 3_600_000,
			at(now - 3_600_000).Mode(), "scan", false},
	} {
		p, err := c.table.planStart(c.start, now)
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
		right := err == nil && int(p.At) == c.from && p.Mode == c.mode && p.Backfill == c.backfill &&
			c.start.Began(p.Mode)
		if err == nil && !right {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
}
