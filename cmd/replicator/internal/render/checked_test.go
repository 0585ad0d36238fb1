package render_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/price"
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

// TestCostOfAMonthWithoutChangesIsChecked: of each table with its poll, of all together, and what
// 100 TiB take with each kind of storage.
func TestCostOfAMonthWithoutChangesIsChecked(t *testing.T) {
	idle, seldom := price.IdleOf(44, time.Second, 1), price.IdleOf(4, time.Minute, 1./60)
	r := &preflight.Report{
		Tables: []*preflight.TableReport{
			{Source: "Orders", Target: "orders", Idle: &idle}, {Source: "Users", Target: "users", Idle: &seldom},
		},
		Running: &preflight.Running{
			Idle:  price.Idle{Shards: 48, Poll: 1, Reads: idle.Reads + seldom.Reads, Dollars: 23.16},
			Bytes: 100 << 40, Storages: price.Choices(0, 100<<40), Prices: price.Assumed(),
		},
	}
	var text, page bytes.Buffer
	if err := render.Checked(&text, r); err != nil {
		t.Fatal(err)
	}
	render.CheckPage(&page, r, "tailrace.yaml")
	for out, lines := range map[*bytes.Buffer][]string{
		&text: {
			"  44 open shards, each read about every 1s while idle: 115,632,000 reads a month, 23.13 dollars; " +
				"a first change waits up to 1s",
			"  4 open shards, each read about every 60s while idle: 175,200 reads a month, 0.04 dollars; " +
				"a first change waits up to 60s",
			"while nothing changes: reading the streams of all tables (48 open shards) costs about 23.16 dollars a month; " +
				"`tables[].idle_poll: 10s` about 2.52 where that lag is no matter. Each account has 2,500,000 reads a month free",
			"    SSD                      20     9,490.00  17,408.00     6.9 hours of all nodes, 90.24 dollars",
			"    HDD                      7      3,321.50  2,662.40      24 hours of all nodes, 110.29 dollars",
			"    tiered, Enterprise       4      1,898.00  not built in  212 hours of all nodes, 551.45 dollars",
			"    tiered, Enterprise Plus  2      949.00    not built in  424 hours of all nodes, 551.45 dollars",
		},
		&page: {
			"| Orders | 44 | 1s | 115,632,000 | 23.13 |", "| Users | 4 | 60s | 175,200 | 0.04 |",
			"| together | 48 | | 115,807,200 | 23.16 |",
			"| tiered, Enterprise | 4 | 1,898.00 | not built in | 212 hours of all nodes, 551.45 dollars |",
		},
	} {
		for _, line := range lines {
			if !strings.Contains(out.String(), "\n"+line+"\n") {
				t.Errorf("no line %s in\n%s", line, out)
			}
		}
	}
	small := &preflight.Report{Running: &preflight.Running{Bytes: 3 << 30, Storages: price.Choices(0, 3<<30)}}
	text.Reset()
	if err := render.Checked(&text, small); err != nil {
		t.Fatal(err)
	}
	want := "Bigtable for 3.0 GiB, as DynamoDB counts them: one node of SSD, 474.50 dollars a month, " +
		"and 0.51 for storage\n"
	if text.String() != want {
		t.Errorf("%s, want %s", &text, want)
	}
}
