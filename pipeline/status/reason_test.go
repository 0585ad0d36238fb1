package status

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// temptingTexts are texts of one kind of reason or halt; each stands under every other code too.
var temptingTexts = []string{
	"no owner: no replicator carries the table", "no sign of life of the owner for 1 m 00 s",
	"standing by, but the owner is gone",
	"not started: no listing of the stream is in the log", "not every shard has been read and applied yet",
	"no log yet: no replicator has created it", "vanished: DynamoDB has no table of this name; its state is kept until x",
	"no longer chosen: its tags match no selection", "table not found; `replicator schema --apply` makes it", "paused",
	"halted: no permission", "NATS away", "reworded", "",
}

var allCodes = []ReasonCode{
	WhyNoOwner, WhyNotStored, WhyNoLog, WhyNotStarted, WhyNotAllRead, WhyStreamOff, WhyOpenUnread, WhyBehindFence,
	WhyPaused, WhyReadingPauses, WhyHalted, WhyLowRetention, WhyGap, WhyCopyCanceled, WhyUnconfirmed, WhyDiffers,
	WhyResyncing, WhyCopying,
	WhyCopyDue, WhyLetters, WhyLateRead, WhyLateApplied, WhyPremise, WhyVanished, WhyUntagged, WhyChosenElse,
	WhyNotReplicable, WhyNote,
}

// TestTextsDecideNothing judges random pipelines twice, with other texts everywhere: the same
// state, table and next step come out.
//
// Rule 14: texts are made from codes, and nothing branches on a text.
func TestTextsDecideNothing(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	text := func() string { return temptingTexts[draw.IntN(len(temptingTexts))] }
	reworded := func(o Outlook) Outlook {
		tables := append([]Table{}, o.Tables...)
		for i := range tables {
			x := &tables[i]
			why := append([]Reason{}, x.Why...)
			for j := range why {
				why[j].Text = text()
			}
			x.Explain(why...)
			if x.Halt != "" {
				x.Halt = text() + "."
			}
			if x.PauseReason != "" {
				x.PauseReason = text() + "."
			}
		}
		failing := append([]Service{}, o.Failing...)
		for i := range failing {
			failing[i].Error = text()
		}
		o.Tables, o.Failing = tables, failing
		return o
	}
	states := map[string]bool{}
	for range 20_000 {
		o := randomOutlook(draw)
		was, is := Judge(o), Judge(reworded(o))
		was.Cause, is.Cause = "", "" // for people
		if diff := cmp.Diff(was, is, cmp.AllowUnexported(Verdict{}, trouble{})); diff != "" {
			t.Fatalf("other texts, another verdict:\n%s\nof %+v", diff, o)
		}
		states[was.State] = true
	}
	for _, s := range []string{
		StateHalted, StateNoOwner, StateStarting, StatePaused, StateLate, StateGone, StateNotReady, StateHealthy, StateFull,
		NATS + " " + StateAway,
	} {
		if !states[s] {
			t.Errorf("no pipeline that was drawn is %s", s)
		}
	}
}

func randomOutlook(draw *rand.Rand) (o Outlook) {
	one := func(n int) bool { return draw.IntN(n) == 0 }
	for _, name := range []string{"Users", "Orders"}[draw.IntN(2):] {
		x := Table{Source: name, State: "running", Retention: 86_000, Ended: one(2)}
		for draw.IntN(3) > 0 {
			x.Add(Reason{allCodes[draw.IntN(len(allCodes))], "as it is worded"})
		}
		switch {
		case one(5):
			x.State, x.Halt = "halted", "as it is worded"
			x.Code = []string{"missing", outcome.CodeSourceGone, outcome.CodeRefused, "error"}[draw.IntN(4)]
		case one(9):
			x.State = "paused"
		case one(9):
			x.PauseReason = "as it is worded"
		}
		o.Tables = append(o.Tables, x)
		o.Reasons += len(x.Why)
	}
	if one(4) {
		o.Failing = []Service{{Name: []string{NATS, Bigtable, DynamoDB}[draw.IntN(3)], Since: time.Unix(1, 0).UTC(),
			Error: "as it is worded", Throttled: one(3)}}
	}
	return o
}

// TestReasonsAreTheTextsOfTheirCodes: a copy of a status keeps its reasons when another gets more.
func TestReasonsAreTheTextsOfTheirCodes(t *testing.T) {
	var st Table
	st.Add(Reason{WhyGap, "b"})
	kept := st
	st.Add(Reason{WhyLetters, "c"})
	kept.Add(Reason{WhyPaused, "d"})
	st.Put(Reason{WhyHalted, "a"})
	if d := cmp.Diff([]string{"a", "b", "c"}, st.Reasons); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"b", "d"}, kept.Reasons); d != "" {
		t.Error(d)
	}
}

// TestTheColumnSaysWhatTheHeadlineSays: a table that runs slower for a reason is not plainly
// running.
func TestTheColumnSaysWhatTheHeadlineSays(t *testing.T) {
	since := time.Now()
	for want, table := range map[string]Table{
		"running": {State: "running"}, "copying": {State: "copying", ThrottledSince: &since},
		"throttled":      {State: "running", ThrottledSince: &since},
		"reading pauses": {State: "running", PauseReason: "the log is full", ThrottledSince: &since},
	} {
		if got := table.Word(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
