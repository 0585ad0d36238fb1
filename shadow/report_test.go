package shadow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// replayed returns a report on one read that was replayed: one item is undecided, and there are as many
// mismatches as given.
func replayed(mismatches int64) *Report {
	c := pattern.NewCollector()
	p := pattern.Pattern{Kind: pattern.Read, Operation: "Query", Table: "Orders", Index: "by_state",
		Key: []pattern.Key{{Attr: "state", Op: access.Equal}}, Rules: []access.Bound{{Rule: "order"}}}
	c.Add(pattern.Request{Uses: []pattern.Use{{Pattern: p, Keys: 1}}}, pattern.Answer{Bytes: 400, Took: time.Millisecond})
	c.Add(pattern.Request{Skipped: pattern.BadJSON}, pattern.Answer{})
	c.Replay(&p, func(r *pattern.Replay) {
		r.Replayed, r.Differed = 1, 1+mismatches
		r.Leave(replay.Ended, 1)
		r.Skip(replay.Projection, 2)
		if mismatches > 0 {
			r.Wrongly(replay.Outside, mismatches)
		}
		r.Micros.Add(1000)
		r.Rows.Add(1)
	})
	r := NewReport(pattern.NewReader(), c.Snapshot(), Passed{Total: 2, Taken: 2})
	r.Patterns[0].Verdict = &access.Verdict{Grade: access.NoRead, Why: "its rows are in several places",
		Read: &access.Read{How: "row", Key: "{id}", Families: []string{"d"}, Rows: []string{"rule order"}}, Declared: "x",
		Index: []access.IndexRow{{Rule: "order", Entry: "{name: by_state}", Family: "x: {max_versions: 1}"}}}
	return r
}

// TestNamesOfTheReportStay: docs/shadow.md promises these names of `--json` to scripts. `counts` and the
// flags of `pattern` are not among them.
func TestNamesOfTheReportStay(t *testing.T) {
	text, err := json.Marshal(replayed(1))
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	namesIn(r, "", names)
	want := strings.Fields(`
		schema began ended counted skipped skipped.json counts
		requests requests.total requests.taken requests.unsampled requests.dropped
		patterns patterns.text patterns.pattern patterns.requests patterns.share patterns.keys patterns.failed
		patterns.bytes patterns.bytes.p50 patterns.bytes.p99 patterns.micros patterns.micros.p50 patterns.micros.p99
		patterns.verdict patterns.verdict.grade patterns.verdict.why patterns.verdict.declared
		patterns.verdict.read patterns.verdict.read.how patterns.verdict.read.key patterns.verdict.read.families
		patterns.verdict.read.rows
		patterns.verdict.index patterns.verdict.index.rule patterns.verdict.index.entry patterns.verdict.index.family
		patterns.replay patterns.replay.reads patterns.replay.settled patterns.replay.undecided
		patterns.replay.skipped patterns.replay.skipped.projection
		patterns.replay.mismatches patterns.replay.mismatches.not_in_the_range
		patterns.replay.micros patterns.replay.micros.p50 patterns.replay.micros.p99
		patterns.replay.rows patterns.replay.rows.p50 patterns.replay.rows.p99`)
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(names))); diff != "" {
		t.Errorf("names of the report (-want +got)\n%s", diff)
	}
}

// namesIn adds the names of an object, those of objects in it behind a dot.
func namesIn(x any, at string, names map[string]bool) {
	switch x := x.(type) {
	case map[string]any:
		for name, value := range x {
			path := strings.TrimPrefix(at+"."+strings.ReplaceAll(name, " ", "_"), ".")
			if names[path] = true; path != "counts" && path != "patterns.pattern" {
				namesIn(value, path, names)
			}
		}
	case []any:
		for _, value := range x {
			namesIn(value, at, names)
		}
	}
}

// TestPageShowsWhatTheReportShows: an item that is undecided is not equal, and reasons are words.
func TestPageShowsWhatTheReportShows(t *testing.T) {
	for mismatches, badge := range map[int64]string{0: "is-undecided", 1: "is-different"} {
		var page strings.Builder
		if err := replayed(mismatches).WritePage(&page, "v1"); err != nil {
			t.Fatal(err)
		}
		want := []string{badge, "return a part of the attributes: 2", "1 undecided", "1 request,"}
		if mismatches > 0 {
			want = append(want, "items whose row is not in the range: 1")
		}
		for _, text := range want {
			if !strings.Contains(page.String(), text) {
				t.Errorf("%d mismatches: the page lacks %q", mismatches, text)
			}
		}
	}
}
