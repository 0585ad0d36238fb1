package render_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform"
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
    COPY BY  READ UNITS  DOLLARS  TRANSFER  HOURS  REMARKS
    scan     262,144     0.03     0.09      0.1    at 500 read units/s, the default
    export   0           0.12     0.09      0.1    once the export is complete (minutes to hours); S3 for a month
`},
		{"100 GB provisioned", source.TableInfo{Items: 100_000_000, Bytes: 100 * gb, ReadUnits: 8000}, config.Backfill{},
			`  about 100,000,000 items, 100 GiB, provisioned; backfill: scan
    COPY BY  READ UNITS  DOLLARS  TRANSFER  HOURS  REMARKS
    scan     26,214,400  0.00     9.00      3.6    at 2,000 read units/s, the default; of 8,000, paid for already
    export   0           12.30    9.00      1.5    once the export is complete (minutes to hours); S3 for a month
`},
		{"10 TB on demand", source.TableInfo{Items: 10_000_000_000, Bytes: 10_000 * gb},
			config.Backfill{From: "export", ReadUnits: config.Units{Absolute: 10_000}, URL: "s3://b/x"},
			`  about 10,000,000,000 items, 9.8 TiB, on demand; backfill: export
    COPY BY  READ UNITS     DOLLARS   TRANSFER  HOURS  REMARKS
    scan     2,621,440,000  327.68    900.00    153    at 10,000 read units/s
    export   0              1,230.00  900.00    153    once the export is complete (minutes to hours); S3 for a month
`},
	} {
		var out bytes.Buffer
		r := &preflight.Report{Tables: []*preflight.TableReport{{Source: "Orders", Target: "orders",
			Copy: preflight.EstimateCopy(&c.info, c.backfill)}}}
		if err := render.Checked(&out, r); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff("Orders → orders\n"+c.want+preflight.PriceNote()+"\n\n", out.String()); d != "" {
			t.Errorf("%s:\n%s", c.name, d)
		}
	}
}

// TestSharedPageNamesTheChosenWay: of two tables one is copied, and the page escapes what a table
// of Markdown takes for its own.
func TestSharedPageNamesTheChosenWay(t *testing.T) {
	copied := &preflight.TableReport{Source: "Or|ders", Target: "orders",
		Copy: preflight.EstimateCopy(&source.TableInfo{Items: 1_000_000, Bytes: 1 << 30}, config.Backfill{})}
	r := &preflight.Report{Tables: []*preflight.TableReport{
		copied, {Source: "Users", Target: "users"},
	}}
	var out bytes.Buffer
	render.CheckPage(&out, r, "tailrace.yaml")
	for _, line := range []string{
		"**0 errors, 0 warnings.**",
		`| Or\|ders | 1,000,000 | 1.0 GiB | **scan** | 262,144 | 0.03 | 0.09 | 0.1 | at 500 read units/s, the default |`,
		`| Or\|ders | 1,000,000 | 1.0 GiB | export | 0 | 0.12 | 0.09 | 0.1 | once the export is complete`,
	} {
		if !strings.Contains(out.String(), "\n"+line) {
			t.Errorf("no line %s in\n%s", line, &out)
		}
	}
	if strings.Contains(out.String(), "| Users |") {
		t.Errorf("a table that is not copied has a cost:\n%s", &out)
	}
}

// TestFoundTablesAreWrittenOnce: of a hundred tables of one entry there is the same to say. Those
// of other entries stand by themselves, also when their rules are the same.
func TestFoundTablesAreWrittenOnce(t *testing.T) {
	report := func(name, path, why string) *preflight.TableReport {
		return &preflight.TableReport{
			Entry: path, Source: name, Target: name, Rules: []transform.RowReport{{Name: "row", Why: why}},
		}
	}
	r := &preflight.Report{Tables: []*preflight.TableReport{
		report("a", "tables[0]", "x"), report("b", "tables[0]", "x"), report("c", "tables[0]", "y"),
		report("d", "tables[1]", "y"),
	}}
	out := &strings.Builder{}
	if err := render.Checked(out, r); err != nil {
		t.Fatal(err)
	}
	want := "a → a\nb → b\n  row: x\nc → c\n  row: y\nd → d\n  row: y\n\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
