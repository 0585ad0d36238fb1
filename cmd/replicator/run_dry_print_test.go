package main

import (
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/pipeline/dryrun"
	"github.com/tailrace-cdc/replicator/price"
)

// TestReportForPeople says what was refused and what is hot, and names the next step.
func TestReportForPeople(t *testing.T) {
	r := &dryrun.Report{
		Seconds: 600, Warnings: []string{"it reads the streams"},
		Estimate: dryrun.Estimate{
			RowsRate: 20.7, Nodes: 1, Dollars: dryrun.Dollars{Nodes: 474.5, Total: 489.123},
			Storages: price.Choices(500, 0),
		},
		Tables: []dryrun.TableReport{{
			Source: "Orders", Records: 12_400, RecordsRate: 20.7, Refused: 12,
			Refusals:   []dryrun.Refusal{{Code: "value", Reason: "column d:n: number does not fit", Count: 12}},
			HotRows:    []dryrun.Heavy{{Hash: "9c41f0a2b7de1123", Share: 0.08, Rate: 1.7}},
			HottestRow: 240, ItemSizes: dryrun.Sizes{P50: 512, P99: 2300, Max: 10_000},
		}, {Source: "Idle"}},
	}
	var out strings.Builder
	if err := writeDry(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"12,400 records read in 10m0s: 21 rows/s for Bigtable, 12 refused; about 1 node and 489.12 dollars a month. " +
			"Nothing was written.\n",
		"refused 12 times: column d:n: number does not fit (value)\n",
		"row 9c41f0a2b7de1123 takes 8 % of the writes, 1.7/s\n", "one row was written 240 times a second",
		"512B/2.2KiB/9.8KiB", "Nodes with another storage: 2 with HDD.\n",
		"Idle:\n  no change was read", "warning: it reads the streams\n", "next: correct the mapping",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
	r.Tables[0].Refused = 0
	out.Reset()
	if err := writeDry(&out, r); err != nil || !strings.Contains(out.String(), "next: `replicator check`") {
		t.Errorf("%v\n%s", err, &out)
	}
	shown := drySteps(r, 3*time.Minute, 12*time.Minute)
	if len(shown) != 2 || shown[0].Percent != 25 || !strings.Contains(shown[0].Text, "21/s") {
		t.Errorf("bars %+v", shown)
	}
}
