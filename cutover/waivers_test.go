package cutover

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/cutover/certificate"
	"github.com/tailrace-cdc/replicator/verify"
)

// TestWaiverCoversItsColumnOfItsRuleAlone: of a cell that several rules may have written, each must
// be accepted. A column that is unproven in some rows is waived in those, and what is waived is
// counted once for the verdict.
func TestWaiverCoversItsColumnOfItsRuleAlone(t *testing.T) {
	cell := func(row, rules, column string) *verify.Open {
		return &verify.Open{Kind: verify.Unowned, Row: []byte(row), Rule: "index x of rule b | rule b", // for people
			Rules: strings.Fields(rules), Family: "d", Qualifier: []byte(column)}
	}
	foreign := &verify.Open{Kind: verify.Foreign, Row: []byte("r9"), Family: "d", Qualifier: []byte("x")}
	sealed := &verify.Open{Kind: verify.Sealed, Row: []byte("r9"), Family: "d", Qualifier: []byte("x")}
	const undecided = "1 item or cell"
	const both = "a b"
	for name, c := range map[string]struct {
		accept  []string
		foreign bool
		cells   []*verify.Open
		waivers map[string]int64
		refused string // "": it is not
	}{
		"in two of many rows": {[]string{"columns:a/d:x"}, false,
			[]*verify.Open{cell("r1", "a", "x"), cell("r2", "a", "x")}, map[string]int64{"columns:a/d:x": 2}, ""},
		"of another rule": {[]string{"columns:b/d:x"}, false, []*verify.Open{cell("r1", "a", "x")}, nil, undecided},
		"another column":  {[]string{"columns:a/d:x"}, false, []*verify.Open{cell("r1", "a", "y")}, nil, undecided},
		"another family":  {[]string{"columns:a/e:x"}, false, []*verify.Open{cell("r1", "a", "x")}, nil, undecided},
		"one of two rules": {[]string{"columns:a/d:x"}, false,
			[]*verify.Open{cell("r1", both, "x"), cell("r2", "a", "x")},
			map[string]int64{"columns:a/d:x": 1}, undecided},
		"both rules": {[]string{"columns:a/d:x", "columns:b/d:x"}, false,
			[]*verify.Open{cell("r1", both, "x"), cell("r2", "b", "x")},
			map[string]int64{"columns:a/d:x": 1, "columns:b/d:x": 2}, ""},
		"a rule whose name looks like two": {[]string{"columns:a/d:x", "columns:b/d:x"}, false,
			[]*verify.Open{{Kind: verify.Unowned, Rules: []string{"a | rule b"}, Family: "d", Qualifier: []byte("x")}},
			nil, undecided},
		"a rule that is not known": {[]string{"columns:/d:x"}, false, []*verify.Open{cell("r1", "", "x")}, nil, undecided},
		"not for foreign cells":    {[]string{"columns:a/d:x"}, false, []*verify.Open{foreign}, nil, "1 cell is foreign"},
		"foreign cells":            {nil, true, []*verify.Open{foreign, foreign}, map[string]int64{"foreign": 2}, ""},
		"nor for sealed ones":      {[]string{"columns:a/d:x"}, true, []*verify.Open{sealed}, nil, undecided},
	} {
		x := &Cutover{Options: Options{Accept: c.accept, AcceptForeign: c.foreign}}
		v, tally := &verified{}, &tally{c: x, accepted: map[string]int64{}}
		for _, o := range c.cells {
			if err := tally.cell(o); err != nil {
				t.Fatal(err)
			}
		}
		reasons := strings.Join(x.unequal(v, tally), "; ")
		if (reasons == "") != (c.refused == "") || !strings.Contains(reasons, c.refused) {
			t.Errorf("%s: refused for %q, want %q", name, reasons, c.refused)
		}
		waived := map[string]int64(nil)
		for _, w := range v.waivers {
			if waived == nil {
				waived = map[string]int64{}
			}
			waived[w.Name] = w.Count
		}
		if diff := cmp.Diff(c.waivers, waived); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCertificateSaysWhatWasAccepted: a reader of the certificate must not take what was waived for
// proven.
func TestCertificateSaysWhatWasAccepted(t *testing.T) {
	says := strings.Join(accepted([]certificate.Waiver{{Name: "foreign", Count: 2}, {Name: "columns:a/d:x", Count: 3},
		{Name: "aged"}}), "\n")
	for _, want := range []string{"2 cells in Bigtable belong to no item", "of 3 cells of a/d:x it is not known",
		"families with max_age"} {
		if !strings.Contains(says, want) {
			t.Errorf("it does not say %q:\n%s", want, says)
		}
	}
}
