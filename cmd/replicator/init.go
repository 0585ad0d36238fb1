package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/problem"
)

// initOptions are the flags of init.
type initOptions struct {
	preflight.ProposeOptions
	out string
}

// initCommand returns the command `replicator init`.
func (a *app) initCommand() *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:   "init --table NAME…",
		Short: "Propose configuration and mapping from live tables",
		Long: `init describes tables, reads a sample of their items, and proposes a configuration with a mapping for each,
with comments. It reports on stderr what a run will lack, such as a stream, which values in the data will cause
trouble, and what copying the items that are there takes. It writes to -o, or to standard output, and never
overwrites a file.

  replicator init --table Orders -o tailrace.yaml
  replicator init --table 'orders-*' --table Users --project acme --instance main --target 'shop-{table}'`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.propose(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Tables, "table", nil, "DynamoDB table, or a pattern such as orders-*; may be repeated")
	f.StringVar(&o.Target, "target", "{table}", "table in Bigtable; {table} stands for the source table, in small letters")
	f.StringVar(&o.Pipeline, "pipeline", "", "name of the pipeline (default: after the first table)")
	f.StringVar(&o.Project, "project", "", "Google Cloud project of Bigtable")
	f.StringVar(&o.Instance, "instance", "", "instance of Bigtable")
	f.IntVar(&o.Sample, "sample", 1000, "how many items of each table to read (costs read capacity)")
	f.StringVarP(&o.out, "out", "o", "", "file to write (default: standard output)")
	f.StringVar(&o.Region, "region", "", "AWS region (default: $AWS_REGION)")
	f.StringVar(&o.Endpoint, "endpoint", "", "endpoint of DynamoDB, if it is not AWS's own")
	cli.Must(cmd.MarkFlagRequired("table"))
	return cmd
}

// propose samples the tables, and prints or writes the proposed configuration.
func (a *app) propose(ctx context.Context, o initOptions) error {
	if o.out != "" { // before anything is asked or paid for
		if _, err := os.Lstat(o.out); !errors.Is(err, fs.ErrNotExist) {
			return failure.Usagef("choose another file with -o", "write proposal: %s is there already", o.out)
		}
	}
	cfg := config.Default()
	cfg.Source.Endpoint = o.Endpoint
	if o.Region != "" {
		cfg.Source.Region = o.Region
	}
	o.Region = cfg.Source.Region
	clients := a.Clients(&cfg)
	defer clients.Close()
	src, err := clients.Source(ctx)
	if err != nil {
		return err
	}
	tables, err := preflight.Propose(ctx, src, &o.ProposeOptions)
	if err != nil {
		return err
	}
	text := preflight.Configuration(&o.ProposeOptions, tables)
	if o.out != "" {
		if err := writeNew(o.out, text); err != nil {
			return err
		}
	}
	return a.printProposal(&o, tables, text)
}

// printProposal prints what was found in the tables, and the configuration unless it is in a file.
func (a *app) printProposal(o *initOptions, tables []*preflight.Proposed, text string) error {
	items, problems := 0, []problem.Problem{}
	for _, t := range tables {
		items += t.Items
		problems = append(problems, t.Problems...)
	}
	a.Problems(a.Errs, problems)
	for _, t := range tables {
		if t.Copy != "" {
			fmt.Fprintf(a.Errs, "%s: the first run %s\n", t.Source, t.Copy)
		}
	}
	if o.out != "" {
		next := "replicator check -c " + o.out
		if o.Project == "" || o.Instance == "" {
			next = "Fill in bigtable, then: " + next
		} else {
			next = "Next: " + next
		}
		fmt.Fprintf(a.Errs, "Wrote %s from %s. %s\n", o.out, render.Count(items, "item"), next)
	}
	if !a.JSON {
		if o.out == "" {
			a.Print("%s", strings.TrimRight(text, "\n"))
		}
		return nil
	}
	report := map[string]any{"schema": schema, "items": items, "problems": problems, "tables": tables}
	if len(tables) == 1 {
		report["table"] = tables[0].Source
	}
	if o.out == "" {
		report["configuration"] = text
	} else {
		report["file"] = o.out
	}
	return a.PrintJSON(report)
}

// writeNew writes a file that must not be there yet.
func writeNew(path, text string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return failure.Usagef("choose another file with -o", "write proposal: %w", err)
	}
	if _, err = f.WriteString(text); err != nil {
		_ = f.Close()
		return fmt.Errorf("write proposal: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write proposal: %w", err)
	}
	return nil
}
