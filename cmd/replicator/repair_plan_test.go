package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/failure"
)

func TestPlanOfARepair(t *testing.T) {
	for name, x := range map[string]struct {
		selection
		want repairPlan
	}{
		"a table":         {selection{table: "T"}, repairPlan{over: overTable, table: "T", wait: true}},
		"and not waiting": {selection{table: "T", noWait: true}, repairPlan{over: overTable, table: "T"}},
		"a look": {selection{table: "T", dryRun: true},
			repairPlan{over: overTable, table: "T", wait: true, dryRun: true}},
		"all gaps":        {selection{gaps: true}, repairPlan{over: overGaps, wait: true}},
		"gaps of a table": {selection{gaps: true, table: "T"}, repairPlan{over: overGaps, table: "T", wait: true}},
		"gaps by their id": {selection{gaps: true, ids: []string{"g"}},
			repairPlan{over: overGaps, ids: []string{"g"}, wait: true}},
		"keys of the only table": {selection{keys: "-"},
			repairPlan{over: overItems, wait: true, items: audit.RepairOptions{Keys: "-"}}},
		"keys of a table, not waiting": {selection{keys: "-", table: "T", noWait: true},
			repairPlan{over: overItems, table: "T", items: audit.RepairOptions{Keys: "-", Table: "T", NoWait: true}}},
		"an export": {selection{export: "u", table: "T"},
			repairPlan{over: overItems, table: "T", wait: true, items: audit.RepairOptions{Export: "u", Table: "T"}}},
		"a look at differences": {selection{from: "d", dryRun: true, deleteForeign: true}, repairPlan{over: overItems,
			wait: true, dryRun: true, items: audit.RepairOptions{From: "d", DryRun: true, DeleteForeign: true}}},
	} {
		got, err := x.plan()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(x.want, *got, cmp.AllowUnexported(repairPlan{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		alias, err := x.planAlias()
		if err != nil {
			t.Errorf("%s, as an alias: %v", name, err)
			continue
		}
		x.want.alias, x.want.items.Unchecked = true, true
		if diff := cmp.Diff(x.want, *alias, cmp.AllowUnexported(repairPlan{})); diff != "" {
			t.Errorf("%s, as an alias: %s", name, diff)
		}
	}
}

func TestTwoSelectionsAreNoRepair(t *testing.T) {
	for want, s := range map[string]selection{
		"nothing is selected":                        {},
		"--keys, --from exclude each other":          {keys: "k", from: "d"},
		"--from-export, --gaps exclude each other":   {table: "T", export: "u", gaps: true},
		"--keys, --from-export exclude each other":   {table: "T", keys: "k", export: "u"},
		"--from, --table exclude each other":         {table: "T", from: "d"},
		"an ID selects a gap":                        {table: "T", ids: []string{"g"}},
		"--from-export needs the table":              {export: "u"},
		"--delete-foreign needs --from":              {table: "T", deleteForeign: true},
		"--dry-run, --no-wait exclude each other":    {table: "T", dryRun: true, noWait: true},
		"--keys, --gaps exclude each other":          {keys: "k", gaps: true, ids: []string{"g"}},
		"--keys, --from, --from-export, --gaps excl": {keys: "k", from: "d", export: "u", gaps: true, table: "T"},
	} {
		for _, plan := range []func() (*repairPlan, error){s.plan, s.planAlias} {
			p, err := plan()
			if class, hint := failure.Of(err); p != nil || class != failure.Usage || hint == "" ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %+v, %v, next: %s", want, p, err, hint)
			}
		}
	}
}
