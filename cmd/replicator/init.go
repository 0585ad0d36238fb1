package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/transform/propose"
)

// initOptions are the flags of init.
type initOptions struct {
	table, out, region, endpoint string
	sample                       int
}

// initCommand returns the command `replicator init`.
func (a *app) initCommand() *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init --table NAME",
		Short: "Propose configuration and mapping from a live table",
		Long: `init describes a table, reads a sample of its items, and proposes a configuration with a mapping, with
comments. It reports on stderr which values in the data will cause trouble. It writes to -o, or to standard output, and
never overwrites a file.`,
		Args: a.Args(cobra.NoArgs),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.propose(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.table, "table", "", "DynamoDB table")
	f.IntVar(&o.sample, "sample", 1000, "how many items to read (costs read capacity)")
	f.StringVarP(&o.out, "out", "o", "", "file to write (default: standard output)")
	f.StringVar(&o.region, "region", "", "AWS region (default: $AWS_REGION)")
	f.StringVar(&o.endpoint, "endpoint", "", "endpoint of DynamoDB, if it is not AWS's own")
	cli.Must(cmd.MarkFlagRequired("table"))
	return cmd
}

// propose samples the table, and prints or writes the proposed configuration.
func (a *app) propose(ctx context.Context, o initOptions) error {
	cfg := config.Default()
	cfg.Source.Endpoint = o.endpoint
	if o.region != "" {
		cfg.Source.Region = o.region
	}
	clients := a.Clients(&cfg)
	defer clients.Close()
	src, err := clients.Source(ctx)
	if err != nil {
		return err
	}
	info, err := src.Table(ctx, o.table)
	if err != nil {
		return exit.Source(err)
	}
	sampler := propose.New(propose.Source{
		Table: o.table, Schema: info.Schema, TTLAttr: info.TTLAttr, Indexes: indexes(info),
	})
	if err := catalog.Sample(ctx, src, o.table, o.sample, sampler.Add); err != nil {
		return err
	}
	proposal := sampler.Proposal()
	text := proposedConfig(&cfg, info, proposal.Mapping)
	problems := tableProblems(o.table, proposal.Findings)
	a.Problems(a.Errs, problems)
	report := map[string]any{"schema": schema, "table": o.table, "items": sampler.Items(), "problems": problems}
	if o.out == "" {
		if a.JSON {
			report["configuration"] = text
			return a.PrintJSON(report)
		}
		a.Print("%s", strings.TrimRight(text, "\n"))
		return nil
	}
	f, err := os.OpenFile(o.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return exit.Usage("choose another file with -o", "write proposal: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		return fmt.Errorf("write proposal: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write proposal: %w", err)
	}
	fmt.Fprintf(a.Errs, "Wrote %s from %s. Fill in bigtable, then: replicator check -c %s\n",
		o.out, render.Count(sampler.Items(), "item"), o.out)
	if a.JSON {
		report["file"] = o.out
		return a.PrintJSON(report)
	}
	return nil
}

// tableProblems returns the findings in a table's items with the table's name in the field of the file. Their paths are
// attributes.
func tableProblems(table string, findings []problem.Problem) []problem.Problem {
	problems := []problem.Problem{} // in JSON [], not null
	for _, f := range findings {
		problems = append(problems, problem.Problem{
			Severity: f.Severity, Code: f.Code, File: table, Path: f.Path, What: f.What, Hint: f.Hint,
		})
	}
	return problems
}

// maxTarget is the longest name of a target table.
const maxTarget = 50

// proposedConfig returns the smallest configuration for the table, with the proposed mapping inline.
func proposedConfig(cfg *config.Config, info source.TableInfo, mapping string) string {
	b := &strings.Builder{}
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", r) {
			return r
		}
		return '-'
	}, strings.ToLower(info.Name))
	fmt.Fprintf(b, "pipeline: %s   # identity of the stored state; never reuse it for other tables\n",
		strings.Trim(name, "-"))
	fmt.Fprintf(b, "source: {region: %q", cfg.Source.Region)
	if cfg.Source.Endpoint != "" {
		fmt.Fprintf(b, ", endpoint: %q", cfg.Source.Endpoint)
	}
	b.WriteString("}\nbigtable: {project: MY-PROJECT, instance: MY-INSTANCE}\nqueue: {dir: ./tailrace-data}\ntables:\n")
	fmt.Fprintf(b, "- source: %s\n  target: %s\n  keys: [%s]\n",
		info.Name, name[:min(maxTarget, len(name))], quotedKeys(info))
	if info.TTLAttr != "" {
		fmt.Fprintf(b, "  on_ttl_expiry: delete   # items expire by %q: delete, keep or archive\n", info.TTLAttr)
	}
	b.WriteString("  mapping:\n")
	for line := range strings.Lines(mapping) {
		if strings.TrimSpace(line) != "" {
			line = "    " + line
		}
		b.WriteString(line)
	}
	return b.String()
}

// quotedKeys returns the table's key as the items of a YAML list.
func quotedKeys(info source.TableInfo) string {
	var all []string
	for _, k := range config.KeysOf(info.Schema) {
		all = append(all, strconv.Quote(k))
	}
	return strings.Join(all, ", ")
}

// indexes returns the table's secondary indexes, by name.
func indexes(info source.TableInfo) (all []propose.Index) {
	for _, name := range slices.Sorted(maps.Keys(info.Indexes)) {
		all = append(all, propose.Index{Name: name, Schema: info.Indexes[name]})
	}
	return all
}
