package render

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// TestSentenceNamesWhatIsNotCopiedYet: everything that the stream shows may be applied while old
// items are missing.
func TestSentenceNamesWhatIsNotCopiedYet(t *testing.T) {
	at := time.Date(2023, 9, 10, 14, 3, 21, 0, time.UTC)
	const start = "Everything written before 2023-09-10 14:03:21 UTC is in Bigtable"
	const end = ". 0 gaps, 0 dead letters, 0.0 s of retention left."
	for clause, tables := range map[string][]pipeline.TableStatus{
		"": {{State: "running"}, {State: "paused"}},
		", except older items that are still to be copied": {{State: "running"}, {State: "copying"},
			{State: "paused", Copy: &resync.Progress{}}},
		", except what the lost log held": {{State: "recovering"}, {State: "running"}},
	} {
		for i := range tables {
			tables[i].Target = "t"
			tables[i].Proof, tables[i].AppliedThrough, tables[i].ProvenThrough = status.Proven, &at, &at
		}
		if got := Sentence(pipeline.Status{Tables: tables}); got != start+", as heartbeats prove"+clause+end {
			t.Errorf("%s", strings.TrimPrefix(got, start))
		}
	}
}

// TestSentenceExceptsDeadLetters: a mark passes what was refused, and the time of the sentence with
// it.
func TestSentenceExceptsDeadLetters(t *testing.T) {
	at := time.Date(2023, 9, 10, 14, 3, 21, 0, time.UTC)
	tables := []pipeline.TableStatus{
		{Target: "t", AppliedThrough: &at, Retention: -1}, {AppliedThrough: &at, DeadLetters: 2, Retention: -1},
	}
	const want = "is in Bigtable, as far as empty reads show, except what was refused. 0 gaps, 2 dead letters."
	if got := Sentence(pipeline.Status{Tables: tables}); !strings.HasSuffix(got, want) {
		t.Errorf("%q does not end with %q", got, want)
	}
}

// TestFencedTableSaysSinceWhenAndWhatIsNext: by which cutover it is fenced, and whether Bigtable
// has what came before.
func TestFencedTableSaysSinceWhenAndWhatIsNext(t *testing.T) {
	at := time.Date(2023, 9, 10, 14, 3, 21, 0, time.UTC)
	for reached, want := range map[bool]string{
		false: "for cutover f1; what was written before the fence is still being applied",
		true:  "for cutover f1; Bigtable has everything up to the fence",
	} {
		table := pipeline.TableStatus{Source: "Orders", State: "fenced",
			Fence: &status.Fence{ID: "f1", Since: at, Reached: reached}}
		var out strings.Builder
		all := pipeline.Status{Tables: []pipeline.TableStatus{table, {Source: "Other"}}}
		if err := Status(&out, all); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, "Orders: fenced since 2023-09-10 14:03:21 UTC "+want) ||
			strings.Count(text, "next: `replicator cutover`") != 1 {
			t.Errorf("lacks %q:\n%s", want, text)
		}
		if shown := strings.Contains(out.String(), "  fence  "); shown != reached {
			t.Errorf("reached: %v, and its sinks are said to stand at the fence: %v\n%s", reached, shown, &out)
		}
	}
}

// TestCertifiedTableIsNotSentToTheCertificate: the certificate is there, and what was written
// behind the fence is said.
func TestCertifiedTableIsNotSentToTheCertificate(t *testing.T) {
	at := time.Date(2023, 9, 10, 14, 3, 21, 0, time.UTC)
	certified := at.Add(time.Minute)
	table := pipeline.TableStatus{Source: "Orders", State: status.WrittenBehindFence,
		Fence: &status.Fence{ID: "f1", Since: at, Reached: true, Certified: &certified},
		BehindFence: &status.BehindFence{Changes: 2, Since: at.Add(2 * time.Minute),
			KeyHashes: []string{"00000000000000ab", "00000000000000cd"}}}
	var out strings.Builder
	if err := Status(&out, pipeline.Status{Tables: []pipeline.TableStatus{table}}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"WRITTEN BEHIND THE FENCE: 2 changes in DynamoDB since 2023-09-10 14:05:21 UTC that Bigtable does not get; " +
			"key hashes 00000000000000ab, 00000000000000cd",
		"certified at 2023-09-10 14:04:21 UTC: the application may write to Bigtable", "`replicator table retire` ends it",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "goes on to the certificate") {
		t.Errorf("it sends people to a certificate that is there:\n%s", text)
	}
}

// TestSentenceSaysWhatIsProvenAndWhatAssumed: one table without proof makes the whole sentence an
// assumption.
func TestSentenceSaysWhatIsProvenAndWhatAssumed(t *testing.T) {
	at := time.Date(2023, 9, 10, 14, 3, 21, 0, time.UTC)
	before := at.Add(-9 * time.Second)
	proven := pipeline.TableStatus{Target: "t", Proof: status.Proven, AppliedThrough: &at, ProvenThrough: &at}
	late := pipeline.TableStatus{Target: "t", Proof: status.Proven, AppliedThrough: &at, ProvenThrough: &before}
	assumed := pipeline.TableStatus{Target: "t", Proof: status.Assumed, AppliedThrough: &at, ProvenThrough: &at}
	for clause, tables := range map[string][]pipeline.TableStatus{
		", as heartbeats prove. ": {proven, proven},
		": before 2023-09-10 14:03:12 UTC as heartbeats prove, since then as far as empty reads show. ": {proven, late},
		", as far as empty reads show. ": {late, assumed},
	} {
		got := Sentence(pipeline.Status{Tables: tables})
		if !strings.Contains(got, "14:03:21 UTC is in Bigtable"+clause) {
			t.Errorf("%q lacks %q", got, clause)
		}
	}
}

// TestStatusNamesTheLimitAndWhatHelps: a word for each table, and a line for each remedy, with the
// tables that need it.
func TestStatusNamesTheLimitAndWhatHelps(t *testing.T) {
	at := func(source string, by limit.By, inFlight, bound int) pipeline.TableStatus {
		calls := limit.Calls{InFlight: inFlight, Bound: bound, Most: 2048}
		return pipeline.TableStatus{Source: source, LimitedBy: by, Calls: &calls}
	}
	tables := []pipeline.TableStatus{
		at("Orders", limit.Latency, 2040, 2048), at("Users", limit.Refusals, 8, 8), at("Idle", limit.Nothing, 0, 32),
		at("Carts", limit.Latency, 1990, 2048), {Source: "Elsewhere"},
	}
	var out strings.Builder
	if err := Status(&out, pipeline.Status{Tables: tables}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"Bigtable's latency  2,040 of 2,048  0 open", "nothing             0 of 32         0 open",
		"–                   –               0 open",
		"\nThe limit of Orders, Carts: Bigtable's latency. What helps: a replicator nearer",
		"\nThe limit of Users: Bigtable refuses. What helps: more Bigtable nodes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "The limit of"); n != 2 {
		t.Errorf("%d lines about limits:\n%s", n, text)
	}
	out.Reset()
	away := pipeline.Status{Tables: tables, Services: []status.Service{{Name: status.Bigtable}}}
	if err := Status(&out, away); err != nil || strings.Contains(out.String(), "What helps") {
		t.Errorf("while Bigtable is away nodes do not help: %v\n%s", err, &out)
	}
	for i := range 9 {
		tables = append(tables, at(strings.Repeat("x", i+1), limit.CPU, 1, 1))
	}
	out.Reset()
	if err := Status(&out, pipeline.Status{Tables: tables}); err != nil {
		t.Fatal(err)
	}
	if want := "The limit of 9 tables: CPU."; !strings.Contains(out.String(), want) {
		t.Errorf("lacks %q:\n%s", want, &out)
	}
}

// TestErrorOfAServiceIsPrintedOnce in a status, however many tables it halts. Another error is
// printed.
func TestErrorOfAServiceIsPrintedOnce(t *testing.T) {
	const denied = "rpc error: code = PermissionDenied desc = no bigtable.tables.readRows."
	var tables []pipeline.TableStatus
	for _, name := range []string{"Carts", "Orders", "Users"} {
		table := pipeline.TableStatus{Source: name, State: "halted", Halt: "load state: " + denied}
		table.Explain(status.HaltedBy(table.Halt))
		tables = append(tables, table)
	}
	s := pipeline.Summarize("shop", tables)
	other := "NATS fails: rpc error: code = Unavailable desc = away"
	s.Fail([]string{"Bigtable fails: tailrace_state: " + denied, other}, nil)
	var out strings.Builder
	if err := Status(&out, s); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "PermissionDenied"); n != 1 {
		t.Errorf("%d times in\n%s", n, out.String())
	}
	for _, want := range []string{
		"not ready: Bigtable fails: tailrace_state: the same error\n", "not ready: " + other + "\n",
		"not ready: 3 tables (Carts, Orders, Users): halted: load state: the same error\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

// TestLongNamesLeaveTheColumnsOnTheScreen: DynamoDB takes names of 255 letters.
func TestLongNamesLeaveTheColumnsOnTheScreen(t *testing.T) {
	long := "acme-production-" + strings.Repeat("x", 230) + "-orders-v2"
	for name, want := range map[string]string{
		"Orders": "Orders", strings.Repeat("y", widestName): strings.Repeat("y", widestName),
		long: "acme-production-xxxx…xxxxxxxxx-orders-v2",
	} {
		if got := shortName(name); got != want || utf8.RuneCountInString(got) > widestName {
			t.Errorf("%s is shown as %s, want %s", name, got, want)
		}
	}
}
