package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSentenceWithoutAServiceIsTheVerdict: what is about the time, not about a service, leaves
// nothing ready.
func TestSentenceWithoutAServiceIsTheVerdict(t *testing.T) {
	away := Service{Name: Bigtable, Error: "away"}
	for _, services := range [][]Service{nil, {away}} {
		s := Summarize("shop", []Table{{Source: "a", State: "running", Retention: -1}})
		var failing []string
		for range services {
			failing = append(failing, "Bigtable fails")
		}
		s.Fail(append(failing, "the time is uncertain"), services)
		if s.Ready || s.Verdict.Ready || s.Verdict.State == StateHealthy || len(s.Reasons) != 1+len(services) {
			t.Errorf("%+v", s)
		}
		if len(services) == 0 && s.Verdict.Cause != "the time is uncertain" {
			t.Errorf("%+v", s.Verdict)
		}
	}
}

// TestReasonOfManyTablesIsOneLine: a missing state table halts all tables alike.
func TestReasonOfManyTablesIsOneLine(t *testing.T) {
	tables := []Table{
		{Source: "a", Reasons: []string{"1 dead letter", "halted: no state table"}},
		{Source: "b", Reasons: []string{"1 dead letter"}},
	}
	for _, name := range []string{"c", "d", "e", "f", "g"} {
		tables = append(tables, Table{Source: name, Reasons: []string{"halted: no state table"}})
	}
	want := []string{
		"a: 1 dead letter", "6 tables (a, c, d, e and 2 others): halted: no state table", "b: 1 dead letter",
	}
	if diff := cmp.Diff(want, Summarize("shop", tables).Reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	want = []string{"3 tables (orders-1, orders-2, orders-3): describe table {table} into {target}: not orders-11 or t-1x"}
	named := []Table{}
	for _, n := range []string{"1", "2", "3"} {
		named = append(named, Table{Source: "orders-" + n, Target: "t-" + n, Reasons: []string{
			"describe table orders-" + n + " into t-" + n + ": not orders-11 or t-1x",
		}})
	}
	if diff := cmp.Diff(want, Summarize("shop", named).Reasons); diff != "" {
		t.Errorf("reasons that name their tables (-want +got):\n%s", diff)
	}
	want = []string{"a: halted: x", "b: halted: x"}
	both := []Table{{Source: "a", Reasons: []string{"halted: x"}}, {Source: "b", Reasons: []string{"halted: x"}}}
	if diff := cmp.Diff(want, Summarize("shop", both).Reasons); diff != "" {
		t.Errorf("reasons of two tables (-want +got):\n%s", diff)
	}
}
