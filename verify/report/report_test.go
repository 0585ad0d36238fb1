package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/verify"
)

// TestVerdictIsEqualOnlyWithoutAnyDoubt: what is kept, and what is equal by the log, does not stand
// in the way.
func TestVerdictIsEqualOnlyWithoutAnyDoubt(t *testing.T) {
	for _, c := range []struct {
		add   []verify.Verdict
		cell  verify.Kind
		want  Verdict
		equal int64
	}{
		{nil, "", Equal, 5},
		{[]verify.Verdict{{Status: verify.Kept, Kept: 2, Absent: true}, {Status: verify.EqualByLog}}, "", Equal, 4},
		{[]verify.Verdict{{Status: verify.Unproven}}, "", Unproven, 4},
		{nil, verify.Unowned, Unproven, 5},
		{nil, verify.Foreign, Different, 5},
		{[]verify.Verdict{{Status: verify.Refused}, {Status: verify.Unproven}}, "", Different, 3},
		{[]verify.Verdict{{Status: verify.Different}, {Status: verify.Different, Absent: true}}, "", Different, 4},
	} {
		table := Table{Items: 5}
		for i := range c.add {
			table.Add(&c.add[i])
		}
		if c.cell != "" {
			table.AddCell(&verify.Open{Kind: c.cell})
		}
		if table.Finish(); table.Verdict != c.want || table.Equal != c.equal {
			t.Errorf("%+v %s: %+v, want %s and %d equal", c.add, c.cell, table, c.want, c.equal)
		}
	}
}

// TestTimesAreRFC3339 is the contract with scripts that read `verify --json`.
func TestTimesAreRFC3339(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	b, err := json.Marshal(Table{Began: at, Ended: at.Add(time.Minute), Proof: Assumed})
	if err != nil {
		t.Fatal(err)
	}
	want := `"began":"2026-01-02T03:04:05.006Z","ended":"2026-01-02T03:05:05.006Z"`
	if !strings.Contains(string(b), want) || !strings.Contains(string(b), `"proof":"assumed"`) {
		t.Errorf("%s lacks %s", b, want)
	}
}
