package admin

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestFrontShowsWhatHappened: the timeline, the charts of all tables together, a line per table,
// and where the state is explained.
func TestFrontShowsWhatHappened(t *testing.T) {
	now := time.Now()
	var hour []latency.Point
	for i := range 8 {
		hour = append(hour, latency.Point{At: now.Add(time.Duration(i) * 30 * time.Second), Rate: float64(i), P99: 1})
	}
	past := pipeline.Past{
		Hours: map[string][]latency.Point{"Orders": hour, "Users": hour},
		Events: []status.Happening{
			{At: now.Add(-time.Hour), Last: now, Times: 3, Table: "Orders", Text: "halted: no permission", Tone: "bad"},
			{At: now, Last: now, Times: 1, Text: "Bigtable is back, after 7 s", Tone: "good"},
		},
	}
	s := pipeline.Summarize("shop", []pipeline.TableStatus{
		{Source: "Orders", State: "paused", PausedBy: "ann", Owner: "a", Retention: -1,
			Why:     []status.Reason{{Code: status.WhyPaused, Text: "paused"}},
			Reasons: []string{"paused " + strings.Repeat("x ", 200)}},
		{Source: "Users", State: "running", Owner: "b", Retention: -1},
	})
	var page bytes.Buffer
	if err := writeFront(&page, &s, &past, "v1", now); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 tables on 2 replicas", `<svg class="tiny"`, "halted: no permission (3 times since ", "Bigtable is back, after 7 s",
		"changes per second: 14 now, at most 14", docs + "operations.md#tailraceretentionlow", "<details><summary>the whole",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// TestTogetherAddsWhatAddsUp: and takes the worst of what does not.
func TestTogetherAddsWhatAddsUp(t *testing.T) {
	at, nan := time.Unix(1000, 0), math.NaN()
	got := together(map[string][]latency.Point{
		"a": {{At: at, P50: 1, P99: nan, Rate: 2, Pending: nan, Lag: 5}},
		"b": {{At: at, P50: 3, P99: 4, Rate: 5, Pending: 6, Lag: 1}, {At: at.Add(30 * time.Second), Rate: 1}},
	})
	want := []latency.Point{{At: at, P50: 3, P99: 4, Rate: 7, Pending: 6, Lag: 5}, {At: at.Add(30 * time.Second), Rate: 1}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if sparkline(got) != "" {
		t.Error("two points are a line")
	}
}

// TestLongReasonIsCutBetweenWords: and never in a command, which would have no end.
func TestLongReasonIsCutBetweenWords(t *testing.T) {
	short := "halted: `replicator check`"
	if begin, rest := cutReason(short); begin != short || rest != "" {
		t.Errorf("%q, %q", begin, rest)
	}
	command := "`" + strings.Repeat("word ", 80) + "`"
	begin, rest := cutReason(command + " and more words")
	if begin != command || rest != "and more words" {
		t.Errorf("%q, %q", begin, rest)
	}
	begin, _ = cutReason(strings.Repeat("word ", 80))
	if len(begin) > longestReason+5 || strings.HasSuffix(begin, "wor") {
		t.Errorf("%d bytes, to %q", len(begin), begin[len(begin)-5:])
	}
}
