package shadow

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// reportOf returns a report with a pattern of each kind: a read that is served, with mismatches, two that
// the same index rows would serve, and a write that DynamoDB refused.
func reportOf() *Report {
	c := pattern.NewCollector()
	add := func(n int, p pattern.Pattern, a pattern.Answer) {
		for range n {
			c.Add(pattern.Request{Uses: []pattern.Use{{Pattern: p, Keys: 1}}}, a)
		}
	}
	key := func(attrs ...string) (keys []pattern.Key) {
		for _, a := range attrs {
			keys = append(keys, pattern.Key{Attr: a, Op: access.Equal})
		}
		return keys
	}
	ok := pattern.Answer{Bytes: 100, Took: time.Millisecond}
	get := pattern.Pattern{Kind: pattern.Read, Operation: "GetItem", Table: "Shop", Key: key("pk", "sk")}
	open := pattern.Pattern{Kind: pattern.Read, Operation: "Query", Table: "Shop", Index: "by_state", Key: key("state")}
	last := open
	last.Backward = true
	add(4, get, ok)
	add(3, open, ok)
	add(2, last, ok)
	add(1, pattern.Pattern{Kind: pattern.Write, Operation: "PutItem", Table: "Shop"}, pattern.Answer{Failed: true})
	c.Replay(&get, func(r *pattern.Replay) {
		r.Replayed, r.Differed = 3, 1
		r.Wrongly("missing_row", 1)
		r.Skip("projection", 1)
		r.Micros.Add(2000)
	})
	c.Replay(&open, func(r *pattern.Replay) { r.Skip("no read", 3) })
	r := NewReport(pattern.NewReader(), c.Snapshot(), Passed{Total: 10, Taken: 10})
	row := []access.IndexRow{{Rule: "order", Entry: "{name: by_state}", Family: "x: {max_versions: 1}"}}
	for i := range r.Patterns {
		switch l := &r.Patterns[i]; l.Pattern.Operation {
		case "GetItem":
			l.Verdict = &access.Verdict{Grade: access.Served, Read: &access.Read{How: "row", Key: "{pk}#{sk}"}}
		case "Query":
			l.Verdict = &access.Verdict{Grade: access.NoRead, Why: "its rows are in several places: a, b", Index: row}
		}
	}
	return r
}

// TestTextShowsEachThingOnce: no time where nothing was measured, no proposal twice, and what to do next.
func TestTextShowsEachThingOnce(t *testing.T) {
	want, err := os.ReadFile("testdata/report.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := reportOf().WriteText(&out, "wrong.jsonl"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
