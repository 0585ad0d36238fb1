package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/shadow"
)

// shadowOptions are the flags of shadow.
type shadowOptions struct {
	listen                 string
	sign, mirror, patterns bool
	share                  string
	tables                 []string
	duration               time.Duration
	mismatches             string
	admin                  string
}

// shadowCommand returns the command `replicator shadow`.
func (a *app) shadowCommand() *cobra.Command {
	o := shadowOptions{}
	cmd := &cobra.Command{
		Use:   "shadow",
		Short: "Make the reads of an application in Bigtable too, and compare",
		Long: `shadow stands between an application and DynamoDB, passes each request and each answer on, unchanged, and
counts the access patterns: operation, index, key condition, flags, without keys and values. Each read gets a grade:
served, order differs, wider range, or no read, with the index row that would serve it.

  replicator shadow
  AWS_ENDPOINT_URL_DYNAMODB=http://dynamodb.REGION.amazonaws.com HTTP_PROXY=http://127.0.0.1:8001 your-application

Reads that have rows are made in Bigtable too, and compared. What differs waits until a proof that Bigtable has every
change, so a running replicator is needed; then it is a mismatch or not. --patterns leaves this out: it needs no
Bigtable. shadow writes nothing in either cloud.

At Ctrl-C it settles what differs, for two minutes at most, and prints what it has seen. A second Ctrl-C ends the
settling.

Exit 4: there are mismatches.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.shadow(ctx, o) }),
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8001", "address of the front")
	f.BoolVar(&o.sign, "sign", false, "take requests for the front's own address, and sign them with its credentials")
	f.BoolVar(&o.mirror, "mirror", false, "take copies of requests, and answer 204: nothing stands in the path")
	f.BoolVar(&o.patterns, "patterns", false, "count access patterns and grade the reads, without Bigtable")
	f.StringVar(&o.share, "share", "", "part of the requests that is counted, such as 1% (default: shadow.share, 100%)")
	f.StringArrayVar(&o.tables, "table", nil, "report on this table alone; may be repeated")
	f.StringVar(&o.mismatches, "mismatches", "", "append mismatches to this file, with their keys; repair --from reads it")
	f.StringVar(&o.admin, "admin", "", "address of a page with the report so far, and of metrics, such as 127.0.0.1:8002")
	f.DurationVar(&o.duration, "for", 0, "end after this time (default: at Ctrl-C)")
	cmd.AddCommand(a.shadowReportCommand(), a.shadowEngineCommand())
	return cmd
}

// shareOf returns the part of the requests that is counted: the flag's, else the configuration's.
func shareOf(flag string, cfg config.Shadow) (float64, error) {
	share := cfg.Share
	if flag != "" {
		if err := share.UnmarshalText([]byte(flag)); err != nil {
			return 0, failure.Usagef("for example --share 1%", "read --share: %w", err)
		}
	}
	return float64(share), nil
}

// shadow runs the front and the engine, and prints what they have seen.
func (a *app) shadow(ctx context.Context, o shadowOptions) error {
	_, err := shareOf(o.share, config.Shadow{}) // before anything is read
	switch {
	case err != nil:
		return err
	case o.sign && o.mirror:
		return failure.Usagef("one of the two", "--sign and --mirror exclude each other")
	case o.patterns && o.mismatches != "":
		return failure.Usagef("leave out --patterns", "--patterns replays no reads, so it has no --mismatches")
	case !o.patterns && o.mirror:
		return failure.Usagef("`replicator shadow --patterns --mirror`", "a mirrored request has no answer to compare with")
	case o.duration < 0:
		return failure.Usagef("for example --for 24h", "read --for: %s is negative", o.duration)
	}
	defer a.LibraryLogs()()
	in, err := a.openShadow(ctx, !o.patterns)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := in.Has(o.tables); err != nil {
		return err
	}
	share, err := shareOf(o.share, in.Config.Shadow)
	if err != nil {
		return err
	}
	if !o.patterns { // the engine meets the same errors, but only logs them
		if _, err := in.ReplayTables(ctx); err != nil {
			return err
		}
		_, closeFile, err := shadow.MismatchFile(o.mismatches, in.Tables)
		if err != nil {
			return err
		}
		_ = closeFile()
	}
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	engine := []string{"shadow", "engine"}
	if a.ConfigPath != "" {
		engine = append(engine, "--config", a.ConfigPath)
	}
	report, err := shadow.Run(ctx, in, shadow.Options{
		Listen: o.listen, Sign: o.sign, Mirror: o.mirror, Patterns: o.patterns, Share: share, Tables: o.tables,
		Mismatches: o.mismatches, Admin: o.admin, Version: a.Version, Engine: engine,
		Log: a.Logger(zapcore.WarnLevel), Errs: a.Errs, SecondSignal: a.secondSignal,
	})
	if err != nil {
		return err
	}
	return a.printShadow(report, o.mismatches)
}

// secondSignal has end called for signals, until undo is. The second one does not end the process, so
// that the report is printed.
func (a *app) secondSignal(end func(again bool)) (undo func()) {
	return a.Signals.Note(func(_ string, again bool) {
		end(again)
		if again {
			select {} // else the process would end when this returns
		}
	})
}

// printShadow prints a report. Mismatches, which a file may name, end the command with exit code 4.
func (a *app) printShadow(report *shadow.Report, mismatches string) error {
	var err error
	if a.JSON {
		err = a.PrintJSON(report)
	} else {
		a.Printed = true
		err = report.WriteText(a.Out, mismatches)
	}
	if totals, _ := report.Totals(); err == nil && totals.Mismatches > 0 {
		return failure.Reported(failure.Different)
	}
	return err
}

// openShadow reads the tables of the configuration, which needs no Bigtable unless reads are replayed.
// The caller closes it.
func (a *app) openShadow(ctx context.Context, replays bool) (in *shadow.Input, err error) {
	a.WithoutBigtable = !replays
	in = &shadow.Input{Logger: a.Logger}
	if in.Config, err = a.Config(ctx); err != nil {
		return nil, err
	}
	in.Clients = a.Clients(in.Config)
	defer func() {
		if err != nil {
			in.Close()
		}
	}()
	if in.Source, err = in.Clients.Source(ctx); err != nil {
		return nil, err
	}
	if in.Tables, err = a.CatalogFor(ctx, in.Config, in.Source, ""); err == nil {
		err = a.Missed(in.Tables, nil)
	}
	if err != nil {
		return nil, err
	}
	in.Describe()
	return in, nil
}
