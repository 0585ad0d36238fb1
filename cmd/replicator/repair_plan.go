package main

import (
	"strings"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/failure"
)

// selection is what the flags of repair, or of one of its aliases, select.
type selection struct {
	table, keys, from, export string
	gaps                      bool
	ids                       []string // of gaps
	noWait, dryRun            bool
	deleteForeign             bool
}

// scope is what a repair goes over.
type scope string

const (
	overTable scope = "table" // all items of one table
	overGaps  scope = "gaps"  // all items of the tables with gaps
	overItems scope = "items" // the items that a file or an export names
)

// repairPlan is what a repair goes over, and how. repair, resync and gaps heal all make one.
type repairPlan struct {
	over   scope
	table  string              // with overGaps "" for all
	ids    []string            // of gaps; none for all
	items  audit.RepairOptions // with overItems
	wait   bool
	dryRun bool
	alias  bool // the output of resync and of gaps heal, which do not compare single items afterwards
}

// plan returns what a repair does. An error is one of usage.
func (s *selection) plan() (*repairPlan, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	p := &repairPlan{over: overTable, table: s.table, wait: !s.noWait, dryRun: s.dryRun}
	switch {
	case s.gaps:
		p.over, p.ids = overGaps, s.ids
	case s.keys != "" || s.from != "" || s.export != "":
		p.over = overItems
		p.items = audit.RepairOptions{
			From: s.from, Keys: s.keys, Export: s.export, Table: s.table, DryRun: s.dryRun, NoWait: s.noWait,
			DeleteForeign: s.deleteForeign,
		}
	}
	return p, nil
}

// planAlias is plan for resync and gaps heal.
func (s *selection) planAlias() (*repairPlan, error) {
	p, err := s.plan()
	if err != nil {
		return nil, err
	}
	p.alias, p.items.Unchecked = true, true
	return p, nil
}

// selectors is the hint of a command line that selects nothing, or two things.
const selectors = "one of --table NAME, --keys FILE, --from FILE, --from-export URL and --gaps"

// check refuses flags that select nothing, two things, or something else than they are for.
func (s *selection) check() error {
	var chosen []string
	for _, x := range []struct {
		flag string
		set  bool
	}{{"--keys", s.keys != ""}, {"--from", s.from != ""}, {"--from-export", s.export != ""}, {"--gaps", s.gaps}} {
		if x.set {
			chosen = append(chosen, x.flag)
		}
	}
	switch {
	case len(chosen) > 1:
		return failure.Usagef(selectors, "%s exclude each other", strings.Join(chosen, ", "))
	case len(s.ids) > 0 && !s.gaps:
		return failure.Usagef("--gaps "+strings.Join(s.ids, " "), "an ID selects a gap, and --gaps is missing")
	case len(chosen) == 0 && s.table == "":
		return failure.Usagef(selectors, "nothing is selected")
	case s.from != "" && s.table != "":
		return failure.Usagef("leave --table out: each difference names its table", "--from, --table exclude each other")
	case s.export != "" && s.table == "":
		return failure.Usagef("--table NAME", "--from-export needs the table of the export")
	case s.deleteForeign && s.from == "":
		return failure.Usagef("`replicator verify --differences FILE` writes the file for --from",
			"--delete-foreign needs --from: only differences name cells that belong to no item")
	case s.dryRun && s.noWait:
		return failure.Usagef("leave one of them out", "--dry-run, --no-wait exclude each other")
	}
	return nil
}
