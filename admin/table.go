package admin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// tableView is the page of a table below its first line.
type tableView struct {
	Table      tableRow
	Facts      []fact
	Charts     []chart
	Lineage    *lineage
	Shards     []shardRow
	MoreShards string
	NoShards   string
	GapRows    []gapRow
	Errors     []errorRow
	Events     []eventRow
}

type fact struct{ Name, Value string }

type shardRow struct{ ID, Parent, Phase, Position, Lag string }

type gapRow struct{ ID, State, Range, Reason string }

type errorRow struct{ At, Tone, Kind, Text string }

// Limits of the tables below the drawing.
const (
	shardRows = 100
	gapRows   = 50
)

func newTableView(t *status.Table, failing bool, x TablePage) tableView {
	v := tableView{
		Table: newRow(t, failing), Charts: charts(x.Hour), Events: eventRows(x.Events),
		NoShards: "The owner of the table's log has not shown its shards yet.",
	}
	v.Facts = facts(t, &v.Table)
	if t.State == status.StandBy {
		v.NoShards = "Another process owns the table: " + t.Owner + " shows its shards."
	}
	for _, e := range x.Errors {
		line := errorRow{At: clockText(e.At), Tone: "warn", Kind: "warning", Text: e.Text}
		if e.Error {
			line.Tone, line.Kind = "bad", "error"
		}
		if e.Times > 1 {
			line.Text += fmt.Sprintf(" (%d times)", e.Times)
		}
		v.Errors = append(v.Errors, line)
	}
	if d := x.Detail; d != nil && len(d.Shards) > 0 {
		v.Lineage = draw(d.Shards, d.More)
		v.Shards, v.MoreShards = shardTable(d)
	}
	if x.Detail != nil {
		v.GapRows = gapTable(x.Detail.Gaps)
	}
	return v
}

func facts(t *status.Table, r *tableRow) []fact {
	applied := unknown
	if t.AppliedThrough != nil {
		applied = "all written before " + clockText(*t.AppliedThrough) + ", "
		if t.Proof == status.Proven {
			applied += "as heartbeats prove"
		} else {
			applied += "as far as empty reads show"
		}
	}
	copied := "none"
	if t.Copy != nil {
		copied = t.Copy.Sentence()
	}
	all := []fact{
		{"Latency of the last minutes, p50 and p99", r.Latency}, {"Changes per second", r.Rate},
		{"Changes that wait in the log", r.Waiting}, {"Limited by", limitFact(r)},
		{"Calls to Bigtable in flight", callsFact(t, r)}, {"Can reach", carriesFact(t.Carries)},
		{"In Bigtable", applied}, {"Age of that proof", r.Proof},
		{"Retention left", r.Retention}, {"Log", r.Log + r.LogLimit}, {"Copy of older items", copied},
		{"Continuous comparison", r.Verify}, {"Dead letters", lettersText(t)},
		{"Gaps", fmt.Sprintf("%d open, %d accepted, %d that differ", t.Gaps, t.Accepted, t.Differing)},
		{"Cost a month", costFact(t.Cost)},
		{"Archive", r.Archive}, {"Owner", fmt.Sprintf("%s (epoch %d)", r.Owner, t.Epoch)},
		{"Shards", fmt.Sprintf("%d open, %d closed, %d waiting, %d done", t.Shards.Open, t.Shards.Closed, t.Shards.Waiting,
			t.Shards.Done)},
	}
	if t.PauseReason != "" {
		all = append([]fact{{"Reading pauses", t.PauseReason}}, all...)
	}
	return all
}

// limitFact returns what limits the table, and what helps.
func limitFact(r *tableRow) string {
	if r.Remedy == "" {
		return r.Limit
	}
	return r.Limit + "; what helps: " + r.Remedy
}

// callsFact returns how many calls are in flight, how many may be, and what caps that.
func callsFact(t *status.Table, r *tableRow) string {
	if t.Calls == nil {
		return r.Calls
	}
	return fmt.Sprintf("%s that may be, up to %d (bigtable.max_in_flight)", r.Calls, t.Calls.Most)
}

// carriesFact returns how many changes the table can reach, and what sets that.
func carriesFact(c *limit.Carried) string {
	if c == nil {
		return unknown
	}
	return fmt.Sprintf("about %s changes a second while no other table is busy, limited by %s: Bigtable answers in %g "+
		"ms, with %s at most", humanize.Comma(c.Changes), c.LimitedBy.Word(), c.LatencyMS, countText(c.Calls, "call"))
}

// shardTable returns the shards as rows, those first that are still read.
func shardTable(d *status.Detail) (rows []shardRow, more string) {
	for _, done := range []bool{false, true} {
		for _, sh := range d.Shards {
			if (sh.Phase == "done") != done || len(rows) == shardRows {
				continue
			}
			lag := unknown
			if sh.LagKnown {
				lag = periodText(sh.Lag.Seconds())
			}
			rows = append(rows, shardRow{sh.ID, sh.Parent, sh.Phase, sh.Position, lag})
		}
	}
	if n := len(d.Shards) + d.More - len(rows); n > 0 {
		more = countText(n, "further shard") + " not listed."
	}
	return rows, more
}

func gapTable(gaps []status.Gap) (rows []gapRow) {
	for _, g := range gaps[:min(len(gaps), gapRows)] {
		lost := "from an unknown time"
		if !g.Since.IsZero() {
			lost = "from " + clockText(g.Since)
		}
		if !g.Until.IsZero() {
			lost += " to " + clockText(g.Until)
		}
		rows = append(rows, gapRow{g.ID, g.State, lost, g.Reason})
	}
	return rows
}

// lettersText returns how many dead letters there are, in all and by reason: the most frequent
// first.
func lettersText(t *status.Table) string {
	codes := slices.SortedFunc(maps.Keys(t.LetterCodes), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.LetterCodes[b], t.LetterCodes[a]), cmp.Compare(a, b))
	})
	var each []string
	for _, code := range codes {
		each = append(each, fmt.Sprintf("%d %s", t.LetterCodes[code], code))
	}
	if len(each) == 0 {
		return fmt.Sprint(t.DeadLetters)
	}
	return fmt.Sprintf("%d: %s", t.DeadLetters, strings.Join(each, ", "))
}
