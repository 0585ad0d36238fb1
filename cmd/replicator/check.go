package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/problem"
)

// checkOptions are the flags of check.
type checkOptions struct {
	offline, strict bool
	capacity        bool
	sample          int
	format          string
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
values will cause trouble. For a table that was never started it says what copying its items takes, by scan and by
export. It prints what reading the streams costs in a month while nothing changes, and how many nodes of Bigtable the
sizes of the tables need with each kind of storage. It prints the permissions that the configuration needs in both
clouds, and tries those that need no write. It reports all problems at once and never writes.

With --capacity it prints, instead, how many changes a second and how fast a copy this machine carries for each table,
and what limits them: it reads a row of each target up to twenty times to measure how long Bigtable takes.

Exit 2 when configuration or mapping are wrong, 3 when the environment is; --strict turns warnings into exit 2.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.check(ctx, o) }),
	}
	f := cmd.Flags()
	f.BoolVar(&o.offline, "offline", false, "only what needs no connection")
	f.BoolVar(&o.capacity, "capacity", false, "how much this machine carries under the configuration, and what limits it")
	f.BoolVar(&o.strict, "strict", false, "warnings count as errors")
	f.StringVar(&o.format, "format", "text", "text, or markdown: a page to share")
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
	Selections []preflight.Selection    `json:"selections,omitempty"`
	Policies   *preflight.Policies      `json:"policies"`
	Running    *preflight.Running       `json:"running_cost,omitempty"`
}

// capacityReport is what check --capacity --json prints.
type capacityReport struct {
	Schema   int               `json:"schema"`
	OK       bool              `json:"ok"`
	Problems []problem.Problem `json:"problems"`
	*preflight.Capacity
}

// check runs the preflight checks and prints what they find.
func (a *app) check(ctx context.Context, o checkOptions) error {
	if o.format != "text" && o.format != "markdown" {
		return failure.Usagef("text or markdown", "unknown format %q", o.format)
	}
	if o.capacity && (o.offline || o.format != "text") {
		return failure.Usagef("--capacity alone, or with --json", "--capacity measures, and prints no page")
	}
	cfg, problems, err := a.Load()
	if err != nil {
		return failure.With(failure.Usage, cli.ConfigHint, err)
	}
	run := preflight.Options{Offline: o.offline, Capacity: o.capacity, Sample: o.sample, Logger: a.Logger}
	if a.ShowsBars() {
		run.Sampling = func(table string, items int64) (progress func(items int), done func()) {
			b := render.NewBars(a.Errs)
			return func(read int) {
				b.Show([]render.Step{{
					Name: "sampling " + table, Percent: 100 * float64(read) / float64(max(items, 1)), Text: render.Count(read, "item"),
				}})
			}, b.Close
		}
	}
	return a.report(preflight.Run(ctx, cfg, problems, run), o)
}

// report prints the findings and returns the exit code: errors of the configuration win over errors
// of the environment.
func (a *app) report(r *preflight.Report, o checkOptions) error {
	all := append(append([]problem.Problem{}, r.Problems...), r.Environment...)
	errs := problem.CountErrors(all)
	warnings := len(all) - errs
	ok := errs == 0 && (!o.strict || warnings == 0)
	switch {
	case o.format == "markdown":
		a.Printed = true
		render.CheckPage(a.Out, r, a.ConfigPath)
	case a.JSON && o.capacity:
		report := capacityReport{schema, ok, all, r.Capacity}
		if report.Capacity == nil {
			report.Capacity = &preflight.Capacity{Tables: []preflight.Ceiling{}}
		}
		if err := a.PrintJSON(report); err != nil {
			return err
		}
	case a.JSON:
		report := checkReport{
			schema, ok, all, r.Principals, r.Endpoints, r.Cost, r.Tables, r.Selections, r.Policies, r.Running,
		}
		if err := a.PrintJSON(report); err != nil {
			return err
		}
	default:
		a.Printed = true
		printed := render.Checked
		if o.capacity {
			printed = render.Capacity
		}
		if err := printed(a.Out, r); err != nil {
			return err
		}
		a.Problems(a.Out, all)
		a.Print("%s: %s, %s", a.ConfigPath, render.Count(errs, "error"), render.Count(warnings, "warning"))
	}
	switch {
	case ok:
		return nil
	case problem.AnyError(r.Problems) || !problem.AnyError(r.Environment):
		return failure.Reported(failure.Usage)
	default:
		return failure.Reported(failure.Unready)
	}
}
