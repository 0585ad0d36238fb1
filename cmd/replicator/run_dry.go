package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/dryrun"
	"github.com/tailrace-cdc/replicator/source"
)

// dryOptions are the flags of a dry run.
type dryOptions struct {
	From     string        // latest or trim_horizon
	Duration time.Duration // 0: until interrupted
}

// The values of --from.
const (
	fromLatest  = "latest"
	fromHorizon = "trim_horizon"
)

// Check refuses flags without a meaning.
func (o dryOptions) Check() error {
	if o.From != fromLatest && o.From != fromHorizon {
		return failure.Usagef("--from latest, or --from trim_horizon", "read --from: %q is not a start of a dry run",
			o.From)
	}
	if o.Duration < 0 {
		return failure.Usagef("for example --duration 10m", "read --duration: %s is negative", o.Duration)
	}
	return nil
}

// runDry reads until the duration is over or ctx ends, and prints what it counted.
func runDry(ctx context.Context, a *cli.App, o dryOptions) error {
	if err := o.Check(); err != nil {
		return err
	}
	cfg, err := a.Replicated(ctx, "")
	if err != nil {
		return err
	}
	if a.ShowsBars() {
		a.Bars = render.NewBars(a.Errs)
		defer a.Bars.Close()
	}
	defer a.LibraryLogs()()
	clients := a.Clients(cfg)
	defer func() { _ = clients.Close() }()
	src, err := clients.Source(ctx)
	if err != nil {
		return err
	}
	tables, err := a.CatalogFor(ctx, cfg, src, "")
	if err != nil {
		return err
	}
	run := dryrun.Options{
		Source: src, Horizon: o.From == fromHorizon, Logger: a.Logger(zapcore.WarnLevel).Named("dry-run"),
	}
	for _, t := range tables.Tables {
		if t.Info.StreamARN == "" {
			return failure.With(failure.Unready, "aws dynamodb update-table --table-name "+
				t.Source+" --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES",
				fmt.Errorf("table %s has no stream", t.Source))
		}
		run.Tables = append(run.Tables, dryTable(t))
	}
	began := time.Now()
	if a.Bars != nil {
		run.Show = func(r *dryrun.Report) { a.Bars.Show(drySteps(r, time.Since(began), o.Duration)) }
	}
	if !a.JSON {
		fmt.Fprintln(a.Errs, announceDry(o))
	}
	report, err := dryRunFor(ctx, run, o.Duration)
	if a.Bars != nil {
		a.Bars.Show(nil)
	}
	if err != nil {
		return source.Explain(err)
	}
	if a.JSON {
		err = a.PrintJSON(report)
	} else {
		a.Printed = true
		err = writeDry(a.Out, report)
	}
	return a.Missed(tables, err)
}

func dryTable(t *catalog.Table) dryrun.Table {
	return dryrun.Table{Source: t.Source, Target: t.Target, Info: t.Info, Program: t.Program}
}

// errDryOver ends a dry run at the end of its duration.
var errDryOver = errors.New("the duration is over")

func dryRunFor(ctx context.Context, run dryrun.Options, duration time.Duration) (*dryrun.Report, error) {
	if duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, duration, errDryOver)
		defer cancel()
	}
	return dryrun.Run(ctx, run)
}

// announceDry prints what begins.
func announceDry(o dryOptions) string {
	text := "dry run: reads the streams from now on"
	if o.From == fromHorizon {
		text = "dry run: reads the streams from the trim horizon on"
	}
	if o.Duration > 0 {
		return fmt.Sprintf("%s for %s, writes nothing", text, o.Duration)
	}
	return text + " until Ctrl-C, writes nothing"
}
