package admin

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/latency"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestPageEscapesWhatItShows: reasons quote other systems.
func TestPageEscapesWhatItShows(t *testing.T) {
	s := pipeline.Summarize("shop", []pipeline.TableStatus{{Source: "Orders", State: "halted", Retention: -1, LogFormat: 1,
		Halts: map[string]string{"bigtable": "x"}, Halt: "<script>alert(1)</script> see `check`",
		Reasons: []string{"<b>bold</b>"}}})
	var front, table bytes.Buffer
	now := time.Now()
	x := TablePage{Errors: []ErrorLine{{At: now, Error: true, Text: "<i>", Times: 2}}}
	if err := writeFront(&front, &s, &pipeline.Past{}, "v1", now); err != nil {
		t.Fatal(err)
	}
	if err := writeTable(&table, &s, &s.Tables[0], x, "v1", now); err != nil {
		t.Fatal(err)
	}
	for name, html := range map[string]string{"front": front.String(), "table": table.String()} {
		for _, raw := range []string{"<script>alert", "<b>bold", "<i>"} {
			if strings.Contains(html, raw) {
				t.Errorf("%s has %q", name, raw)
			}
		}
		if !strings.Contains(html, "<code>replicator resume --table Orders</code>") ||
			!strings.Contains(html, "<code>check</code>") {
			t.Errorf("%s does not set commands apart:\n%s", name, html)
		}
	}
	if !strings.Contains(table.String(), "(2 times)") {
		t.Error("a repeated error is not counted")
	}
}

// TestNoTableIsGreenWhileAServiceFails: a green row below a red line would be believed.
func TestNoTableIsGreenWhileAServiceFails(t *testing.T) {
	running := status.Table{Source: "A", State: "running", LimitedBy: limit.Refusals}
	for failing, want := range map[bool]string{true: "warn", false: "good"} {
		if got := newRow(&running, failing); got.Tone != want || (got.Remedy == "") != failing {
			t.Errorf("failing %t: %s, %q, want %s", failing, got.Tone, got.Remedy, want)
		}
	}
}

// TestLogOfAnotherReplicaIsNotEmpty: what is not known of it is not shown as a number.
func TestLogOfAnotherReplicaIsNotEmpty(t *testing.T) {
	for _, tt := range []struct {
		q          status.Queue
		log, limit string
	}{
		{status.Queue{}, unknown, ""}, {status.Queue{Limit: 1 << 30}, "0 %", " of 1.0 GiB"},
		{status.Queue{Bytes: 1 << 20}, "1.0 MiB", ""},
	} {
		if r := newRow(&status.Table{Queue: tt.q}, false); r.Log != tt.log || r.LogLimit != tt.limit {
			t.Errorf("%+v: %q, %q", tt.q, r.Log, r.LogLimit)
		}
	}
}

// TestTroubleComesFirst: of two hundred tables the one in trouble must not be far down.
func TestTroubleComesFirst(t *testing.T) {
	s := pipeline.Summarize("shop", []pipeline.TableStatus{{Source: "A", State: "running"},
		{Source: "B", State: "running"},
		{Source: "C", State: "copying"}, {Source: "D", State: "halted"},
		{Source: "E", State: "running", Reasons: []string{"late"}}})
	var front bytes.Buffer
	if err := writeFront(&front, &s, &pipeline.Past{}, "v1", time.Now()); err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, name := range []string{"D", "E", "C", "A", "B"} {
		at := strings.Index(front.String(), `id="table-`+name+`"`)
		if at <= last {
			t.Errorf("%s is not behind what is worse", name)
		}
		last = at
	}
}

// someShards returns roots with children: as many generations of as many shards as wanted.
func someShards(generations, width int) (all []status.Shard) {
	for g := range generations {
		for i := range width {
			sh := status.Shard{ID: fmt.Sprintf("shardId-%d-%04x", g, i), Phase: "done", Position: "after record 7"}
			if g > 0 {
				sh.Parent = fmt.Sprintf("shardId-%d-%04x", g-1, i)
			}
			if g == generations-1 {
				sh.Phase, sh.Lag, sh.LagKnown = "open", time.Duration(i)*time.Second, true
			}
			all = append(all, sh)
		}
	}
	return all
}

// TestDrawingIsBounded: hundreds of shards are groups, and old generations are left out and
// counted.
func TestDrawingIsBounded(t *testing.T) {
	few := draw(someShards(3, 4), 0)
	if len(few.Nodes) != 12 || len(few.Edges) != 8 || few.Omitted != "" {
		t.Errorf("%d nodes, %d edges, %q", len(few.Nodes), len(few.Edges), few.Omitted)
	}
	many := draw(someShards(20, 500), 3)
	if len(many.Nodes) > generations*len(phases) || len(many.Edges) != generations-1 || many.Height > 600 {
		t.Errorf("%d nodes, %d edges, height %d", len(many.Nodes), len(many.Edges), many.Height)
	}
	if want := "6,003 older shards not drawn."; many.Omitted != want {
		t.Errorf("%q, want %q", many.Omitted, want)
	}
	last := many.Nodes[len(many.Nodes)-1]
	if last.Name != "500 shards" || last.State != "open, lag up to 8 m 19 s" {
		t.Errorf("the last group: %+v", last)
	}
	loop := []status.Shard{{ID: "a", Parent: "b", Phase: "open"}, {ID: "b", Parent: "a", Phase: "open"}}
	if got := draw(loop, 0); len(got.Nodes) != 2 {
		t.Errorf("a cycle: %+v", got)
	}
	old := someShards(20, 1)
	old[2].Phase = "open" // still read although it is old
	if got := draw(old, 0); len(got.Nodes) != generations+1 {
		t.Errorf("%d nodes, want that of the old shard too", len(got.Nodes))
	}
}

// TestChartBreaksWhereNothingIsKnown: a line through an outage would claim something.
func TestChartBreaksWhereNothingIsKnown(t *testing.T) {
	at := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	var points []latency.Point
	for i, p99 := range []float64{1, 2, math.NaN(), 4} {
		points = append(points, latency.Point{At: at.Add(time.Duration(i) * 30 * time.Second), P99: p99, Rate: 0,
			Pending: math.NaN(), Lag: 3})
	}
	all := charts(points)
	if c := all[0]; len(c.Paths) != 2 || c.Label != "p99 latency: 4.0 s now, at most 4.0 s" {
		t.Errorf("%+v", c)
	}
	if c := all[2]; len(c.Paths) != 0 || c.Label != "waiting changes: – now, at most 0" {
		t.Errorf("%+v", c)
	}
	for _, c := range all {
		if strings.Contains(strings.Join(c.Paths, ""), "NaN") {
			t.Errorf("%+v", c)
		}
	}
}

// TestLimitIsDrawnOnceValuesComeNearIt: a limit far above all values would press them flat.
func TestLimitIsDrawnOnceValuesComeNearIt(t *testing.T) {
	point := latency.Point{At: time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)}
	for lag, want := range map[float64]struct{ limit, high string }{
		3: {"", "3.0 s"}, 60: {"M0 2.0h240", "2 m 00 s"}, 240: {"M0 24.0h240", "4 m 00 s"},
	} {
		point.Lag = lag
		c := charts([]latency.Point{point})[3]
		if c.Limit != want.limit || c.High != want.high || !strings.HasSuffix(c.Label, ", late above 2 m 00 s") {
			t.Errorf("%v s: %+v, want %+v", lag, c, want)
		}
	}
}

// TestDeadLettersByReason: the most frequent reason comes first.
func TestDeadLettersByReason(t *testing.T) {
	for want, table := range map[string]status.Table{
		"0": {},
		"3": {DeadLetters: 3}, // of a table that another process carries
		"7: 4 family, 2 row_key, 1 too_old": {
			DeadLetters: 7, LetterCodes: map[string]int{"row_key": 2, "too_old": 1, "family": 4},
		},
	} {
		if got := lettersText(&table); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
