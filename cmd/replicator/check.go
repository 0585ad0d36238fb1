package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/sink/bigtable"
)

// checkOptions are the flags of check.
type checkOptions struct {
	offline, strict bool
	sample          int
}

func (a *app) checkCommand() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find everything that is wrong with configuration, mappings and environment; write nothing",
		Long: `check reads the configuration and the mappings, then asks DynamoDB, Bigtable and the queue what a run would need of
them, compares with what earlier runs left (tailrace_state, the logs, the owner of each target), and tries the mappings on a sample of items: what each rule writes and in which class, what becomes of every
attribute, and what the data will do to it. All problems are said at once. It never writes.

Exit 2 when configuration or mapping are wrong, 3 when the environment is; --strict turns warnings into exit 2.`,
		Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error { return a.check(ctx, o) }),
	}
	f := cmd.Flags()
	f.BoolVar(&o.offline, "offline", false, "only what needs no connection")
	f.BoolVar(&o.strict, "strict", false, "warnings count as errors")
	f.IntVar(&o.sample, "sample", defaultSample, "try the mapping on so many items of each table (reads them: costs capacity; 0: none)")
	return cmd
}

// checkup collects what check finds.
type checkup struct {
	cfg        *config.Config
	problems   []config.Problem // of configuration and mappings
	around     []config.Problem // of the environment
	endpoints  map[string]string
	principals map[string]string
	cost       map[string]any
	tables     []*tableReport

	sink   *bigtable.Client // nil: not reachable
	queue  *queue.Queue     // nil: there is none, or it is not reachable
	noLogs bool             // it is not reachable
}

// defaultSample is how many items of each table check reads, in pages of at most 1 MB: 128 read units each.
const defaultSample = 1000

// askTimeout is what a server gets to answer one question of check: the clients' own patience is made for daemons.
const askTimeout = 5 * time.Second

// checkReport is what check --json prints.
type checkReport struct {
	Schema     int               `json:"schema"`
	OK         bool              `json:"ok"`
	Problems   []config.Problem  `json:"problems"`
	Principals map[string]string `json:"principals"`
	Endpoints  map[string]string `json:"endpoints"`
	Cost       map[string]any    `json:"cost"`
	Tables     []*tableReport    `json:"tables"`
}

func (a *app) check(ctx context.Context, o checkOptions) error {
	cfg, problems, err := config.Load(a.configPath)
	if err != nil {
		return &exit.Error{Code: exit.CodeUsage, Err: err, Hint: configHint}
	}
	u := &checkup{cfg: cfg, problems: problems, endpoints: map[string]string{}, principals: map[string]string{}, cost: map[string]any{}, tables: []*tableReport{}}
	all, found := parseMappings(cfg.Tables)
	u.problems = append(u.problems, found...)
	switch {
	case config.Refused(u.problems):
	case o.offline:
		u.memory()
		a.checkOffline(u, all)
	default:
		u.memory()
		a.checkAround(ctx, u, all, o.sample)
	}
	return a.report(u, o.strict)
}

// checkOffline compiles what can be compiled without DynamoDB: mappings of tables whose key is declared.
func (a *app) checkOffline(u *checkup, all []*carried) {
	for _, c := range all {
		if c.declared(); !c.found && c.mapping != nil {
			u.problems = append(u.problems, config.Problem{Severity: "warning", Code: "keys", Path: c.path + ".keys",
				What: "the mapping of " + c.Source + " was read, but not compiled: its key is not known offline", Hint: "keys: [pk:S, sk:S]"})
		}
	}
	u.problems = append(u.problems, compile(u.cfg, all)...)
	for _, c := range all {
		if c.program != nil {
			u.tables = append(u.tables, &tableReport{Source: c.Source, Target: c.Target, Rules: c.program.Report(), Coverage: []attributeUse{}})
		}
	}
}

// report prints the findings and returns the exit code: the configuration's errors win over those around it.
func (a *app) report(u *checkup, strict bool) error {
	all := append(append([]config.Problem{}, u.problems...), u.around...)
	faults := 0
	for _, p := range all {
		if p.Severity == "error" {
			faults++
		}
	}
	warnings := len(all) - faults
	ok := faults == 0 && (!strict || warnings == 0)
	if a.json {
		if err := a.printJSON(checkReport{schema, ok, all, u.principals, u.endpoints, u.cost, u.tables}); err != nil {
			return err
		}
	} else {
		a.printTableReports(u)
		a.problems(a.out, all)
		a.printMemory(u)
		a.print("%s: %s, %s", a.configPath, render.Count(faults, "error"), render.Count(warnings, "warning"))
	}
	switch {
	case ok:
		return nil
	case config.Refused(u.problems) || !config.Refused(u.around):
		return exit.Silent(exit.CodeUsage)
	default:
		return exit.Silent(exit.CodeEnvironment)
	}
}

func (a *app) printMemory(u *checkup) {
	usual, known := u.cost["memory_bytes"].(int64)
	if !known {
		return
	}
	most := u.cost["memory_bytes_large_items"].(int64)
	a.print("memory: run takes about %d MiB, up to %d MiB with items of hundreds of KB in every table", usual>>20, most>>20)
}
