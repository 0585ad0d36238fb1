package main

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/preflight"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
)

// checkOptions are the flags of check.
type checkOptions struct {
	offline, strict bool
	sample          int
}

// checkCommand returns the command `replicator check`.
func (a *app) checkCommand() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find everything that is wrong with configuration, mappings and environment; write nothing",
		Long: `check reads the configuration and the mappings, then asks DynamoDB, Bigtable and the queue what a run would
need of them, compares with what earlier runs left (tailrace_state, the logs, the owner of each target), and tries the
mappings on a sample of items: what each rule writes and in which class, what becomes of every attribute, and which
values will cause trouble. It reports all problems at once and never writes.

Exit 2 when configuration or mapping are wrong, 3 when the environment is; --strict turns warnings into exit 2.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.check(ctx, o) }),
	}
	f := cmd.Flags()
	f.BoolVar(&o.offline, "offline", false, "only what needs no connection")
	f.BoolVar(&o.strict, "strict", false, "warnings count as errors")
	f.IntVar(&o.sample, "sample", preflight.DefaultSample,
		"how many items of each table to try the mapping on (costs read capacity; 0: none)")
	return cmd
}

// checkReport is what check --json prints.
type checkReport struct {
	Schema     int                      `json:"schema"`
	OK         bool                     `json:"ok"`
	Problems   []problem.Problem        `json:"problems"`
	Principals map[string]string        `json:"principals"`
	Endpoints  map[string]string        `json:"endpoints"`
	Cost       map[string]int64         `json:"cost"`
	Tables     []*preflight.TableReport `json:"tables"`
}

// check runs the preflight checks and prints what they find.
func (a *app) check(ctx context.Context, o checkOptions) error {
	cfg, problems, err := config.Load(a.configPath)
	if err != nil {
		return &exit.Error{Code: exit.CodeUsage, Err: err, Hint: configHint}
	}
	run := preflight.Options{Offline: o.offline, Sample: o.sample, Logger: a.logger}
	if a.showsBars() {
		run.Sampling = func(table string, items int64) (progress func(items int), done func()) {
			b := newBar(a.errs, "sampling "+table, items)
			return func(items int) { b.set(int64(items), render.Count(items, "item")) }, b.close
		}
	}
	return a.report(preflight.Run(ctx, cfg, problems, run), o.strict)
}

// report prints the findings and returns the exit code: errors of the configuration win over those of the environment.
func (a *app) report(r *preflight.Report, strict bool) error {
	all := append(append([]problem.Problem{}, r.Problems...), r.Environment...)
	errs := problem.CountErrors(all)
	warnings := len(all) - errs
	ok := errs == 0 && (!strict || warnings == 0)
	if a.json {
		if err := a.printJSON(checkReport{schema, ok, all, r.Principals, r.Endpoints, r.Cost, r.Tables}); err != nil {
			return err
		}
	} else {
		a.printTableReports(r)
		a.problems(a.out, all)
		a.printMemory(r)
		a.print("%s: %s, %s", a.configPath, render.Count(errs, "error"), render.Count(warnings, "warning"))
	}
	switch {
	case ok:
		return nil
	case problem.AnyError(r.Problems) || !problem.AnyError(r.Environment):
		return exit.Silent(exit.CodeUsage)
	default:
		return exit.Silent(exit.CodeEnvironment)
	}
}

// printTableReports prints each server with its address and the principal of the calls, and for each table its rules
// with their class, and what becomes of its attributes.
func (a *app) printTableReports(r *preflight.Report) {
	for _, server := range slices.Sorted(maps.Keys(r.Principals)) {
		a.print("%s: %s, as %s", server, r.Endpoints[server], r.Principals[server])
	}
	for _, t := range r.Tables {
		a.print("%s → %s", t.Source, t.Target)
		for i := range t.Rules {
			rule := &t.Rules[i]
			if rule.Row == "" {
				a.print("  %s: %s", rule.Name, rule.Why)
				continue
			}
			a.print("  %s: row %s, class %s: %s", rule.Name, rule.Row, render.Class(rule.Class), rule.Why)
			if back := render.WayBack(rule); back != "" {
				a.print("    %s", back)
			}
		}
		if t.Sampled > 0 {
			a.print("  %s sampled: %s", render.Count(t.Sampled, "item"), render.AttributeUses(t.Uses))
		}
	}
	if len(r.Tables) > 0 {
		a.print("")
	}
}

// printMemory prints how much memory run takes, if the report has an estimate.
func (a *app) printMemory(r *preflight.Report) {
	if usual, known := r.Cost[preflight.CostMemory]; known {
		a.print("memory: run takes about %d MiB, up to %d MiB with items of hundreds of KB in every table",
			usual>>20, r.Cost[preflight.CostMemoryLarge]>>20)
	}
}
