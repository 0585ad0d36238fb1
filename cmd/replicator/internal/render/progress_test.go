package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestProgressOfEachTable: a copy, a resync whose owner answers, one of which only the log tells,
// and a table that another process carries.
func TestProgressOfEachTable(t *testing.T) {
	since := time.Date(2026, 11, 22, 14, 3, 21, 0, time.UTC)
	s := pipeline.Status{Tables: []pipeline.TableStatus{
		{Source: "Orders", Copy: &resync.Progress{
			Percent: 50, Items: 12_300_000, EstimatedItems: 30_000_000, Rate: 5100, ETA: 3480}},
		{Source: "Carts", State: "healing", ResyncSince: &since, Resync: &resync.WholeStatus{
			Doing: "repairing", Items: 30, Estimate: 40, Candidates: 9, Settled: 7, Different: 5, Repaired: 2, Hot: 1}},
		{Source: "Users", State: "recovering", ResyncSince: &since},
		{Source: "Idle"},
		{Source: "Other", State: status.StandBy, ResyncSince: &since},
	}}
	var out bytes.Buffer
	PrintBars(&out, Steps(s, ""))
	for _, want := range []string{
		"copying Orders [============------------]  50 %  12.3 M of about 30 M items · 5,100/s · about 58 min left\n",
		"healing Carts [==================------]  75 %  repairing · 9 may differ, 7 looked at again: " +
			"5 different, 2 repaired, 1 open\n",
		"recovering Users [------------------------]   0 %  since ", "14:03:21",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "["); n != 3 {
		t.Errorf("%d bars in\n%s", n, out.String())
	}
	if got := Steps(s, "Users"); len(got) != 1 || got[0].Name != "recovering Users" {
		t.Errorf("%+v", got)
	}
	out.Reset()
	Lines(&out, Steps(s, "Carts"), since)
	if want := "14:03:21Z healing Carts: 75 % · repairing · 9 may differ, 7 looked at again: 5 different, 2 repaired, " +
		"1 open\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestWaitingSaysWhatFor: a command that waits is not silent, whatever it waits for.
func TestWaitingSaysWhatFor(t *testing.T) {
	at := time.Date(2026, 11, 22, 14, 3, 21, 0, time.UTC)
	table := func(name string, why ...status.Reason) (t pipeline.TableStatus) {
		t.Source = name
		t.Explain(why...)
		return t
	}
	late := status.Reason{Code: status.WhyLateRead, Text: "late"}
	halted := pipeline.Summarize("shop", []pipeline.TableStatus{
		table("Orders", status.Reason{Code: status.WhyPaused, Text: "paused"}),
		table("Carts", status.Reason{Code: status.WhyHalted, Text: "halted: no such table"}),
		table("Users", status.Reason{Code: status.WhyLetters, Text: "1 dead letter"}), // no wait is for it
		table("B1", late), table("B2", late), table("B3", late), // a line for all three
	})
	healing := &pipeline.Status{Tables: []pipeline.TableStatus{{Source: "Carts", State: "healing", ResyncSince: &at,
		Resync: &resync.WholeStatus{Doing: "waiting", Why: "begins in 1m46s"}}}}
	for want, show := range map[string]struct {
		status *pipeline.Status
		table  string
	}{
		"14:03:21Z waits: no replicator answers at here:1 (admin.listen); " +
			"`replicator status` shows whether one runs elsewhere\n": {nil, ""},
		"14:03:21Z waits: Orders: paused\n14:03:21Z waits: Carts: halted: no such table\n" +
			"14:03:21Z waits: 3 tables (B1, B2, B3): late\n": {&halted, ""},
		"14:03:21Z waits: Carts: halted: no such table\n":                               {&halted, "Carts"},
		"14:03:21Z waits: B2: late\n":                                                   {&halted, "B2"},
		"14:03:21Z waits: until each shard was read, and what it brought was applied\n": {&halted, "Users"},
		"14:03:21Z healing Carts: 0 % · waiting · begins in 1m46s\n":                    {healing, ""},
	} {
		var out bytes.Buffer
		if Waiting(&out, show.status, show.table, "here:1", at); out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}
