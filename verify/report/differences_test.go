package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/verify"
)

// TestDifferencesAreReadAsTheyWereWritten, binary rows included.
func TestDifferencesAreReadAsTheyWereWritten(t *testing.T) {
	key := `{"pk":{"B":"AP8="},"sk":{"N":"1"}}`
	want := []*Difference{
		OfItem("Orders", "orders", &verify.Verdict{Key: key, Status: verify.Different, Kinds: []verify.Kind{verify.Value},
			Rows: [][]byte{{0, 255, '\n'}}, Future: 7,
			Cells: []verify.CellDifference{{Kind: verify.Value, Row: []byte{0, 255, '\n'}, Family: "d"}}}),
		OfCell("orders", &verify.Open{Kind: verify.Foreign, Row: []byte{0xff}, Family: "d", Qualifier: []byte{0}}),
	}
	var file bytes.Buffer
	for _, d := range want {
		if err := d.Write(&file); err != nil {
			t.Fatal(err)
		}
	}
	var got []*Difference
	for d, err := range Differences(&file) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLineThatIsNoDifferenceIsNamed(t *testing.T) {
	for _, bad := range []string{"secret", `{"schema":2,"target":"orders","table":"Orders","key":{}}`,
		`{"schema":1,"target":"orders","table":"Orders"}`, `{"schema":1,"table":"Orders","key":{}}`} {
		file := strings.NewReader("\n" + `{"schema":1,"target":"t","table":"T","key":{}}` + "\n" + bad + "\n")
		n := 0
		var last error
		for _, err := range Differences(file) {
			n, last = n+1, err
		}
		if n != 2 || last == nil || !strings.HasPrefix(last.Error(), "line 3: ") || strings.Contains(last.Error(), "secret") {
			t.Errorf("%s: %d lines, %v", bad, n, last)
		}
	}
}
