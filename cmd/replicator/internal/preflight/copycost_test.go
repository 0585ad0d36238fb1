package preflight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/source"
)

// TestBothWaysOfCopyingAreEstimatedSideBySide: the examples of docs/backfill.md.
func TestBothWaysOfCopyingAreEstimatedSideBySide(t *testing.T) {
	const gb = 1 << 30
	for _, c := range []struct {
		name     string
		info     source.TableInfo
		backfill config.Backfill
		want     string
	}{
		{"1 GB on demand", source.TableInfo{Items: 1_000_000, Bytes: gb}, config.Backfill{},
			`  about 1,000,000 items, 1.0 GiB, on demand; backfill: scan
    COPY BY  READ UNITS  DOLLARS  HOURS  REMARKS
    scan     262,144     0.03     0.1    at 500 read units/s, the default
    export   0           0.12     0.1    once the export is complete (minutes to hours); S3 for a month
`},
		{"100 GB provisioned", source.TableInfo{Items: 100_000_000, Bytes: 100 * gb, ReadUnits: 8000}, config.Backfill{},
			`  about 100,000,000 items, 100 GiB, provisioned; backfill: scan
    COPY BY  READ UNITS  DOLLARS  HOURS  REMARKS
    scan     26,214,400  0.00     3.6    at 2,000 read units/s, the default; of 8,000, which are paid for already
    export   0           12.30    2.9    once the export is complete (minutes to hours); S3 for a month
`},
		{"10 TB on demand", source.TableInfo{Items: 10_000_000_000, Bytes: 10_000 * gb},
			config.Backfill{From: "export", ReadUnits: config.Units{Absolute: 10_000}, URL: "s3://b/x"},
			`  about 10,000,000,000 items, 9.8 TiB, on demand; backfill: export
    COPY BY  READ UNITS     DOLLARS   HOURS  REMARKS
    scan     2,621,440,000  327.68    291    at 10,000 read units/s
    export   0              1,230.00  291    once the export is complete (minutes to hours); S3 for a month
`},
	} {
		var out bytes.Buffer
		if err := estimateCopy(&c.info, c.backfill).Write(&out); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, out.String()); d != "" {
			t.Errorf("%s:\n%s", c.name, d)
		}
	}
}

// TestSharedPageNamesTheChosenWay: of two tables one is copied, and the page escapes what a table of Markdown takes
// for its own.
func TestSharedPageNamesTheChosenWay(t *testing.T) {
	copied := &TableReport{Source: "Or|ders", table: &catalog.Table{Table: config.Table{Target: "orders"}},
		Copy: estimateCopy(&source.TableInfo{Items: 1_000_000, Bytes: 1 << 30}, config.Backfill{})}
	r := &Report{Tables: []*TableReport{
		copied, {Source: "Users", table: &catalog.Table{Table: config.Table{Target: "users"}}},
	}}
	var out bytes.Buffer
	r.WriteMarkdown(&out, "tailrace.yaml")
	for _, line := range []string{
		"**0 errors, 0 warnings.**",
		`| Or\|ders | 1,000,000 | 1.0 GiB | **scan** | 262,144 | 0.03 | 0.1 | at 500 read units/s, the default |`,
		`| Or\|ders | 1,000,000 | 1.0 GiB | export | 0 | 0.12 | 0.1 | once the export is complete`,
	} {
		if !strings.Contains(out.String(), "\n"+line) {
			t.Errorf("no line %s in\n%s", line, &out)
		}
	}
	if strings.Contains(out.String(), "| Users |") {
		t.Errorf("a table that is not copied has a cost:\n%s", &out)
	}
}

// TestAssumedPricesAreSaid: with region and date, by check, in its JSON and in the documents.
func TestAssumedPricesAreSaid(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/backfill.md")
	if err != nil {
		t.Fatal(err)
	}
	e := estimateCopy(&source.TableInfo{Items: 1, Bytes: 1}, config.Backfill{})
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	p := e.Prices
	for _, value := range []string{p.Region, p.AsOf, fmt.Sprint(p.MillionUnits), fmt.Sprint(p.ExportedGB),
		fmt.Sprint(p.StoredGB)} {
		for where, said := range map[string]string{"note": PriceNote(), "JSON": string(text), "page": string(page)} {
			if !strings.Contains(said, value) {
				t.Errorf("the %s does not say %s", where, value)
			}
		}
	}
}

// TestCopyThatBeginsIsSaidInOneSentence: run prints it before it begins.
func TestCopyThatBeginsIsSaidInOneSentence(t *testing.T) {
	info := source.TableInfo{Items: 30_000_000, Bytes: 28 << 30}
	for from, want := range map[string]string{
		"": "copies about 30,000,000 items (28 GiB) by scan: about 0.92 dollars and 4.1 hours", "none": "",
		"export": "copies about 30,000,000 items (28 GiB) by export: about 3.44 dollars and 0.8 hours",
	} {
		if got := estimateCopy(&info, config.Backfill{From: from}).Sentence(); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
	if got := CopySentence(&source.TableInfo{Items: 1}); !strings.HasPrefix(got, "copies about 1 item (") {
		t.Error(got)
	}
	slow := config.Backfill{WriteRows: 1000}
	if e := estimateCopy(&info, slow); e.Scan.Hours < 8 || e.Export.Hours < 8 {
		t.Errorf("at 1,000 rows a second: %v and %v hours", e.Scan.Hours, e.Export.Hours)
	}
}
