package cutover

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
	"github.com/tailrace-cdc/replicator/verify"
)

const (
	plain = `families: {d: {max_versions: 1}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "d:v"}]}]`
	aging = `families: {d: {max_versions: 1}, a: {max_age: 1h}}
rules: [{name: r, match: {pk: "{p}", sk: "{s}"}, row: "{p}#{s}", cells: [{attr: v, to: "a:v"}]}]`
)

// newCutover returns a cutover without servers: of the tables A, B and so on, of one target.
func newCutover(t *testing.T, o Options, mappings ...string) *Cutover {
	t.Helper()
	cfg := config.Default()
	cfg.Pipeline = "shop"
	for i, text := range mappings {
		cfg.Tables = append(cfg.Tables, config.Table{Source: string(rune('A' + i)), Target: "orders",
			Keys: config.Keys{"pk:S", "sk:S"}, OnTTLExpiry: "delete",
			Mapping: config.Mapping{File: "m.yaml", Data: []byte(text)}})
	}
	all := &pair.Pair{Target: "orders"}
	for i := range cfg.Tables { // each by itself, because they would share rows
		one := cfg
		one.Tables = cfg.Tables[i : i+1]
		tables, err := catalog.Load(t.Context(), &one, nil)
		if err != nil {
			t.Fatal(err)
		}
		all.Tables = append(all.Tables, tables.Tables...)
	}
	return New(&cfg, nil, all, o)
}

// TestEachThingThatIsNotEqualForbidsTheCertificate: unless it is accepted by name, and then the
// certificate says so.
func TestEachThingThatIsNotEqualForbidsTheCertificate(t *testing.T) {
	const column = "columns:r/d:x"
	accept := func(names ...string) Options { return Options{Accept: names} }
	item := func(s verify.Status) *verify.Verdict { return &verify.Verdict{Status: s} }
	cell := func(kind verify.Kind, rule, qualifier string) *verify.Open {
		return &verify.Open{
			Kind: kind, Rule: "for people", Rules: strings.Fields(rule), Family: "d", Qualifier: []byte(qualifier),
		}
	}
	waived := func(name string) []certificate.Waiver { return []certificate.Waiver{{Name: name, Count: 1}} }
	unproven, foreign := certificate.Verify{Unproven: 1}, certificate.Verify{Foreign: 1}
	for name, c := range map[string]struct {
		o       Options
		item    *verify.Verdict
		cell    *verify.Open
		reason  string
		waivers []certificate.Waiver
		want    certificate.Verify
	}{
		"nothing":   {},
		"equal":     {item: item(verify.Equal)},
		"kept":      {item: item(verify.Kept)},
		"by log":    {item: item(verify.EqualByLog), want: certificate.Verify{EqualByLog: 1}},
		"different": {item: item(verify.Different), reason: "1 item differs", want: certificate.Verify{Different: 1}},
		"refused":   {item: item(verify.Refused), reason: "1 item is refused", want: certificate.Verify{Refused: 1}},
		"unproven":  {item: item(verify.Unproven), reason: "1 item or cell is unproven", want: unproven},

		"foreign": {cell: cell(verify.Foreign, "", "x"), reason: "1 cell is foreign", want: foreign},
		"foreign, accepted": {o: Options{AcceptForeign: true}, cell: cell(verify.Foreign, "", "x"),
			waivers: waived("foreign"), want: foreign},
		"foreign, another accepted": {o: accept(column), cell: cell(verify.Foreign, "r", "x"), reason: "foreign",
			want: foreign},
		"sealed, others accepted": {o: Options{AcceptForeign: true, AcceptAged: true}, cell: cell(verify.Sealed, "", "x"),
			reason: "unproven", want: unproven},
		"sealed, its column accepted": {o: accept(column), reason: "unproven", cell: cell(verify.Sealed, "r", "x"),
			want: unproven},

		"unowned": {cell: cell(verify.Unowned, "r", "x"), reason: "unproven", want: unproven},
		"unowned, accepted": {o: accept("other", column), cell: cell(verify.Unowned, "r", "x"), waivers: waived(column),
			want: unproven},
		"unowned, another accepted": {o: accept(column), reason: "unproven", cell: cell(verify.Unowned, "r", "y"),
			want: unproven},
		"unowned, without a rule": {o: accept("columns:/d:x"), reason: "unproven", cell: cell(verify.Unowned, "", "x"),
			want: unproven},
		"unowned, one of two rules accepted": {o: accept(column), reason: "unproven",
			cell: cell(verify.Unowned, "q r", "x"), want: unproven},
		"unowned, both rules accepted": {o: accept(column, "columns:q/d:x"), cell: cell(verify.Unowned, "q r", "x"),
			waivers: append(waived("columns:q/d:x"), waived(column)...), want: unproven},
	} {
		x := newCutover(t, c.o, plain)
		x.behind[0].expired = map[string][]byte{"k": nil}
		v, tally := &verified{Verify: certificate.Verify{EqualByLog: 7}}, &tally{c: x, accepted: map[string]int64{}}
		var err error
		if c.item != nil {
			err = tally.item(c.item)
		}
		if c.cell != nil {
			err = tally.cell(c.cell)
		}
		if err != nil {
			t.Fatal(err)
		}
		reasons := strings.Join(x.unequal(v, tally), "; ")
		if !strings.Contains(reasons, c.reason) || (reasons == "") != (c.reason == "") {
			t.Errorf("%s: %q", name, reasons)
		}
		c.want.Verdict, c.want.Expired, c.want.EqualByLog = "equal", 1, c.want.EqualByLog+7
		if d := cmp.Diff(c.want, v.Verify) + cmp.Diff(c.waivers, v.waivers); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestItemsAreTallied: an item that the source has not does not make fewer of its items equal.
func TestItemsAreTallied(t *testing.T) {
	for _, c := range []struct {
		v                     verify.Verdict
		notEqual, kept, byLog int64
	}{
		{verify.Verdict{Status: verify.Equal, Kept: 1}, 0, 1, 0}, {verify.Verdict{Status: verify.Kept, Kept: 2}, 0, 2, 0},
		{verify.Verdict{Status: verify.EqualByLog, Kept: 3}, 0, 3, 1}, {verify.Verdict{Status: verify.Different}, 1, 0, 0},
		{verify.Verdict{Status: verify.Different, Absent: true}, 0, 0, 0}, {verify.Verdict{Status: verify.Refused}, 1, 0, 0},
		{verify.Verdict{Status: verify.Unproven}, 1, 0, 0}, {verify.Verdict{Status: verify.Unproven, Absent: true}, 0, 0, 0},
	} {
		x := &tally{}
		err := x.item(&c.v)
		if err != nil || x.items != 1 || x.notEqual != c.notEqual || x.kept != c.kept || x.byLog != c.byLog {
			t.Errorf("%s, absent %v: %+v, %v", c.v.Status, c.v.Absent, x, err)
		}
	}
}

// TestWhatIsOnlyCountedForbidsTheCertificate: cells without a known owner, beyond those that are
// looked at again.
func TestWhatIsOnlyCountedForbidsTheCertificate(t *testing.T) {
	n := verify.Counts{Items: 10, Rows: 20, Cells: 30, Kept: 4, Foreign: 7, Unproven: 6}
	for _, c := range []struct {
		t                 tally
		equal, kept       int64
		foreign, unproven int64
	}{
		{tally{}, 10, 4, 7, 6},
		{tally{notEqual: 2, kept: 3}, 8, 7, 7, 6},
		{tally{foreign: 7, sealed: 6, unproven: 9}, 10, 4, 7, 9},
		{tally{foreign: 8, sealed: 8, unproven: 9}, 10, 4, 8, 9},
		{tally{foreign: 5, sealed: 4, unproven: 9}, 10, 4, 7, 11},
	} {
		var v certificate.Verify
		c.t.addFull(&v, &n)
		want := certificate.Verify{Items: 10, Rows: 20, Cells: 30, Equal: c.equal, Kept: c.kept}
		if d := cmp.Diff(want, v); d != "" || c.t.foreign != c.foreign || c.t.unproven != c.unproven {
			t.Errorf("%d foreign, %d unproven (-want +got):\n%s", c.t.foreign, c.t.unproven, d)
		}
	}
}

// TestTablesWhoseCellsAgeNeedAWaiver: each of them.
func TestTablesWhoseCellsAgeNeedAWaiver(t *testing.T) {
	for _, c := range []struct{ mappings, want []string }{
		{[]string{plain}, nil}, {[]string{plain, aging}, []string{"B"}}, {[]string{aging, plain, aging}, []string{"A", "C"}},
	} {
		if names := newCutover(t, Options{}, c.mappings...).ages(); !slices.Equal(names, c.want) {
			t.Errorf("%q", names)
		}
	}
}

// TestFullComparisonThatIsNotOneForACutoverIsNotUsed: then all items are compared behind the fence.
func TestFullComparisonThatIsNotOneForACutoverIsNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		r    audit.Saved
		o    Options
		want string
	}{
		"weak reads":   {audit.Saved{Followed: true}, Options{}, "without --for-cutover"},
		"not followed": {audit.Saved{Strong: true}, Options{}, "without --for-cutover"},
		"open items": {audit.Saved{Strong: true, Followed: true, OpenItems: 3}, Options{AcceptForeign: true},
			"found 3 items"},
		"more cells than are listed": {audit.Saved{Strong: true, Followed: true, OpenCells: 1_000_001},
			Options{AcceptForeign: true}, "than it lists"},
		"open cells": {audit.Saved{Strong: true, Followed: true, OpenCells: 4}, Options{AcceptAged: true}, "found 4 cells"},
	} {
		why, err := newCutover(t, c.o, plain).unusable(t.Context(), &audit.Changed{Result: &c.r})
		if err != nil || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
}

// TestIdlenessIsProvenByHeartbeatsOfEveryShard: and of every table, up to the end of the
// comparison.
func TestIdlenessIsProvenByHeartbeatsOfEveryShard(t *testing.T) {
	const through = change.Millis(100)
	log := func(p checkpoint.Proof) *control.Log { return &control.Log{State: &checkpoint.State{Proof: p}} }
	proven, short := log(checkpoint.Proof{Read: through}), log(checkpoint.Proof{Read: through - 1})
	for name, c := range map[string]struct {
		logs []*control.Log
		want string
	}{
		"proven":                 {[]*control.Log{proven, proven}, "is proven"},
		"not far enough":         {[]*control.Log{proven, short}, "is assumed"},
		"not far enough, first":  {[]*control.Log{short, proven}, "is assumed"},
		"a shard without":        {[]*control.Log{log(checkpoint.Proof{Assumed: 1, Read: through + 9})}, "is assumed"},
		"without any heartbeats": {[]*control.Log{log(checkpoint.Proof{})}, "is assumed"},
	} {
		if got := idleSentence(c.logs, through); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if idleness(proven, through) != certificate.Proven || idleness(short, through) != certificate.Assumed {
		t.Error("the certificate says otherwise for the table")
	}
}

// TestCertificateWaitsForHeartbeats: of the tables that get them, also where the owner has heard of
// no shard yet, as after the fence, which ends a life of it.
func TestCertificateWaitsForHeartbeats(t *testing.T) {
	const through = change.Millis(100)
	log := func(p checkpoint.Proof) *control.Log { return &control.Log{State: &checkpoint.State{Proof: p}} }
	with := &catalog.Table{Table: config.Table{Heartbeat: config.Heartbeat{Write: true}}}
	for name, c := range map[string]struct {
		first, second checkpoint.Proof // the second table gets no heartbeats
		want          bool
	}{
		"proven":          {checkpoint.Proof{Read: through}, checkpoint.Proof{}, true},
		"not far enough":  {checkpoint.Proof{Read: through - 1}, checkpoint.Proof{Read: through}, false},
		"no shard so far": {checkpoint.Proof{Assumed: 4}, checkpoint.Proof{Read: through}, false},
		"one without":     {checkpoint.Proof{Assumed: 1, Read: through}, checkpoint.Proof{Read: through}, false},
	} {
		x := &Cutover{pair: &pair.Pair{Tables: []*catalog.Table{with, {}}}}
		if got := x.provenByHeartbeats([]*control.Log{log(c.first), log(c.second)}, through); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCertificateSaysWhatItRestsOn: what was compared before the fence was compared then.
func TestCertificateSaysWhatItRestsOn(t *testing.T) {
	all := strings.Join(statements(&verified{}, "idle"), "\n")
	if !strings.Contains(all, "Every item that the tables held at the fence") || !strings.Contains(all, "idle") ||
		strings.Contains(all, "assumed") || !strings.Contains(all, "after it was issued") {
		t.Error(all)
	}
	v := &verified{Verify: certificate.Verify{Began: time.Unix(0, 0), Changed: &certificate.Changed{Items: 12}}}
	all = strings.Join(statements(v, "idle"), "\n")
	for _, want := range []string{"began at 1970-01-01T00:00:00Z, before the fence", "The 12 items that have changed",
		"nothing else than the replicator", "idle"} {
		if !strings.Contains(all, want) {
			t.Errorf("it does not say %s: %s", want, all)
		}
	}
}
