package admin

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// tableRow is a table on the front page.
type tableRow struct {
	Source, Target, State, Tone              string
	Latency, Rate, Waiting, Proof, Retention string
	Limit, Calls, Remedy                     string
	Log, LogLimit                            string
	Copy, CopyLeft, Verify, Archive, Owner   string
	Cost                                     string
	Letters, Gaps, CopyPercent               int
	Spark                                    string  // the path of the last hour's changes per second
	Order                                    int     // of its colour: trouble first
	LagNumber, RateNumber, WaitingNumber     float64 // to sort by; -1: not known
	HasLetters, HasGaps                      bool
	LettersText                              string // by reason
}

// columns are the columns of the front page that some table needs; most pipelines need none of them
// most of the time.
type columns struct{ Copy, Verify, Archive, Cost bool }

func (c *columns) add(t *status.Table) {
	c.Copy, c.Verify, c.Archive = c.Copy || t.Copy != nil, c.Verify || t.Verify != nil, c.Archive || t.Archive != nil
	c.Cost = c.Cost || t.Cost != nil
}

func newRow(t *status.Table, failing bool) tableRow {
	r := tableRow{
		Source: t.Source, Target: t.Target, State: t.Word(), Tone: tableTone(t, failing), Latency: unknown, Waiting: unknown,
		Rate: perSecond(orNaN(t.Rate)), Proof: periodText(t.AppliedLag), Retention: periodText(t.Retention),
		Log: logText(&t.Queue), LogLimit: limitText(&t.Queue),
		Copy: "none", Verify: verifyText(t), Archive: archiveText(t), Owner: t.Owner, Cost: costText(t.Cost),
		Letters: t.DeadLetters, Gaps: max(t.Gaps, t.Differing),
		Limit: cmp.Or(t.LimitedBy.Word(), unknown), Calls: callsText(t.Calls), Remedy: t.LimitedBy.Remedy(t.Calls),
	}
	if failing {
		r.Remedy = "" // the verdict says what helps
	}
	if f := t.Fence; f != nil && f.Reached && t.AppliedLag == 0 {
		r.Proof = "fence" // changes behind it may be waiting
	}
	r.Order, r.LagNumber, r.RateNumber, r.WaitingNumber = slices.Index(tones, r.Tone), t.AppliedLag, -1, -1
	if t.Rate != nil {
		r.RateNumber = *t.Rate
	}
	if t.Pending != nil {
		r.WaitingNumber = float64(*t.Pending)
	}
	if t.Copy != nil {
		r.CopyPercent = int(t.Copy.Percent)
	}
	r.HasLetters, r.HasGaps = r.Letters > 0, r.Gaps > 0
	r.LettersText = lettersText(t)
	if l := t.Latency; l != nil {
		r.Latency = periodText(l.P50) + ", " + periodText(l.P99)
	}
	if t.Pending != nil {
		r.Waiting = wholeText(float64(*t.Pending))
	}
	switch c := t.Copy; {
	case c == nil:
	case c.Paused != "":
		r.Copy = fmt.Sprintf("%d %%, paused", int(c.Percent))
	case c.ETA >= 0:
		r.Copy, r.CopyLeft = fmt.Sprintf("%d %%", int(c.Percent)), periodText(c.ETA)+" left"
	default:
		r.Copy = fmt.Sprintf("%d %%", int(c.Percent))
	}
	if r.Owner == "" {
		r.Owner = "none"
	}
	return r
}

// callsText returns how many calls to Bigtable are in flight, and how many may be.
func callsText(c *limit.Calls) string {
	if c == nil {
		return unknown
	}
	return wholeText(float64(c.InFlight)) + " of " + wholeText(float64(c.Bound))
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// tableTone returns the colour of a table's state. While a service fails that every table needs, no
// table is green.
func tableTone(t *status.Table, failing bool) string {
	switch {
	case t.State == "halted" || t.State == "gap" || t.State == status.WrittenBehindFence || t.PauseReason != "":
		return "bad"
	case t.State == "copying" || t.State == "healing" || t.State == "recovering" || t.State == "fenced" ||
		t.State == status.StandBy:
		return "busy"
	case failing || len(t.Reasons) > 0 || t.ThrottledSince != nil:
		return "warn"
	}
	return "good"
}

// logText returns how full a log is. Only its owner reports the limit.
func logText(q *status.Queue) string {
	switch {
	case q.Limit > 0:
		return fmt.Sprintf("%.0f %%", 100*float64(q.Bytes)/float64(q.Limit))
	case q.Bytes > 0:
		return humanize.IBytes(q.Bytes)
	}
	return unknown
}

// limitText returns what follows the text of a log; nothing while its limit is not known.
func limitText(q *status.Queue) string {
	if q.Limit == 0 {
		return ""
	}
	return " of " + humanize.IBytes(q.Limit)
}

func verifyText(t *status.Table) string {
	v := t.Verify
	if v == nil {
		return "off"
	}
	text := "no difference known"
	if v.Different+v.Foreign > 0 {
		text = fmt.Sprintf("%d different, %d foreign", v.Different, v.Foreign)
	}
	return text + fmt.Sprintf(", %.0f %% of this pass, %s", 100*min(v.Items.Share, v.Rows.Share),
		countText(int(v.Cycles), "cycle"))
}

func archiveText(t *status.Table) string {
	a := t.Archive
	if a == nil {
		return "none"
	}
	text := countText(int(a.Waiting), "event") + " in no object yet"
	if a.Stalled {
		return "stalled: " + text
	}
	if a.Trouble != "" || a.ObjectsTrouble != "" || a.SubjectTrouble != "" {
		return "in trouble: " + text
	}
	return text
}
