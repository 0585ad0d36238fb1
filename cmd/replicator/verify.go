package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/audit"
	"github.com/tailrace-cdc/replicator/audit/pair"
	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// verifyFlags are the flags of `replicator verify`.
type verifyFlags struct {
	audit.SampleOptions
	differences string
	since       string
	html        string
	workers     audit.Workers
}

// verifyCommand returns the command `replicator verify`.
func verifyCommand(a *cli.App) *cobra.Command {
	var o verifyFlags
	cmd := &cobra.Command{
		Use:   "verify [--table NAME] [--sample N | --since last|TIME | --for-cutover] [--workers URL] [--differences FILE]",
		Short: "Compare tables with Bigtable while they are written to",
		Long: `verify reads every item and every row once, and looks again at whatever may differ: it reads the item strongly,
waits until Bigtable has every change up to that reading, and reads the rows. So a change on its way is no difference.
It changes no data, and needs the daemon to run.

An item is equal as of a moment of its own after the begin. Without --strong, tables are read with eventual consistency,
which costs half and may lag; what may differ is always read strongly.

--sample N compares random items only, at the cost of a small page for each. It says what that shows, and prints a
seed; rows without an item and foreign cells are not looked for.

The result of a full comparison of all tables of a target is kept in scratch. --since last compares only the items that
have changed since that one began, and those that were not equal then, with strong reads. When they are equal, the next
--since last begins where this one did. --since TIME says nothing about items that have not changed since. Both need the
log to reach back so far: else they are unproven, and a full comparison is needed.

--for-cutover reads all items strongly, and reads the logs along, so that it does not matter when they are trimmed. A
cutover then compares behind its fence only what has changed since.

--workers URL compares tables that outgrow one machine: it has them exported to S3, prints the command that compares
the exports with the rows on a distributed engine (replicator-bulk verify), waits for it, and settles what was found.
It goes on where it was when it is run again. Plan and findings are in a folder below the URL; they hold keys.

Exit 4: something is different, or unproven. --differences names it, and holds keys and rows; values only with
--show-data.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return runVerify(ctx, a, &o) }),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if o.N < 0 || o.N == 0 && (cmd.Flags().Changed("sample") || o.Seed > 0) {
				return failure.Usagef("--sample 1000", "--sample is a number of items; --seed goes with it")
			}
			if o.workers.Exports != "" && o.workers.Folder == "" {
				return failure.Usagef("add --workers gs://bucket/prefix", "--exports goes with --workers")
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Table, "table", "", "only this source table")
	f.StringVar(&o.since, "since", "", "only what has changed since: last (the last full one), a time (RFC 3339), or 2h")
	f.BoolVar(&o.Along, "for-cutover", false, "read strongly, and note what changes meanwhile, for a cutover")
	f.BoolVar(&o.Strong, "strong", false, "read the tables with strong consistency")
	f.IntVar(&o.N, "sample", 0, "compare only this many random items of each table")
	f.Uint64Var(&o.Seed, "seed", 0, "with --sample: draw the items that a sample with this seed drew (default: new ones)")
	f.StringVar(&o.Scratch, "scratch", "", "directory for what is sorted (default: scratch of the configuration)")
	f.StringVar(&o.workers.Folder, "workers", "",
		"compare on a distributed engine; URL of a folder for plan, findings and exports: s3://bucket/prefix")
	f.StringVar(&o.workers.Exports, "exports", "",
		"with --workers: s3://bucket/prefix for the exports, where the folder is elsewhere (gs://bucket/prefix)")
	f.StringVar(&o.differences, "differences", "", "file for the differences, as JSON lines, mode 0600; - for stdout")
	f.StringVar(&o.html, "html", "", "file for the result as one page that needs nothing else, mode 0600")
	f.BoolVar(&o.Values, "show-data", false,
		"values in --differences; keys and values in --html; what is not equal by prefix of the row key")
	cmd.MarkFlagsMutuallyExclusive("since", "for-cutover", "sample")
	cmd.MarkFlagsMutuallyExclusive("since", "strong")
	cmd.MarkFlagsMutuallyExclusive("workers", "since", "sample", "table")
	cmd.MarkFlagsMutuallyExclusive("table", "for-cutover")
	return cmd
}

// verified is what verify --json prints.
type verified struct {
	Schema  int            `json:"schema"`
	Verdict report.Verdict `json:"verdict"`
	Tables  []report.Table `json:"tables"`
	// NotCompared are the tables of targets of which a table cannot be described.
	NotCompared []uncompared `json:"not_compared,omitempty"`
}

// uncompared is a table that was not compared, and why.
type uncompared struct {
	Table string `json:"table"`
	Error string `json:"error"`
	Hint  string `json:"hint"`
}

// notCompared returns the tables of the file that the catalog leaves out.
func notCompared(tables *catalog.Catalog) (all []uncompared) {
	for _, l := range tables.LeftOut {
		if len(l.Problems) == 0 { // else they are printed already
			_, hint := failure.Of(l.Err)
			all = append(all, uncompared{Table: l.Source, Error: l.Err.Error(), Hint: hint})
		}
	}
	return all
}

// toCompare returns the tables, and the first one of each target that is compared.
func (o *verifyFlags) toCompare(
	ctx context.Context, a *cli.App, cfg *config.Config, src *source.Source,
) (tables *catalog.Catalog, first []string, err error) {
	if o.Table != "" {
		tables, err = a.Catalog(ctx, cfg, src, o.Table)
		return tables, []string{o.Table}, err
	}
	if tables, err = a.EachTarget(ctx, cfg, src); err != nil {
		return nil, nil, err
	}
	return tables, pair.Targets(tables), nil
}

// runVerify compares the targets one after the other and prints the result.
func runVerify(ctx context.Context, a *cli.App, o *verifyFlags) error {
	if o.Seed == 0 {
		o.Seed = uint64(rand.Uint32()) // short enough to be typed
	}
	cfg, err := a.Replicated(ctx, o.Table)
	if err != nil {
		return err
	}
	if _, err := catalog.Select(cfg, o.Table); err != nil {
		return err
	}
	clients := a.Clients(cfg)
	defer clients.Close()
	src, err := clients.Source(ctx)
	if err != nil {
		return err
	}
	tables, first, err := o.toCompare(ctx, a, cfg, src)
	if err != nil {
		return err
	}
	files, err := o.openFiles(a)
	if err != nil {
		return err
	}
	defer files.close()
	if o.workers.Folder != "" {
		o.workers.Region = cfg.Source.Region
		o.Workers = &o.workers
	}
	o.Say = func(line string) { fmt.Fprintln(a.Errs, line) }
	stop := o.showProgress(a)
	result := verified{Schema: cli.Schema, Tables: []report.Table{}, NotCompared: notCompared(tables)}
	for _, table := range first {
		s, err := pair.Open(ctx, cfg, clients, tables, table)
		if err == nil {
			var found []report.Table
			found, err = o.compare(ctx, cfg, s)
			result.Tables = append(result.Tables, found...)
		}
		if err != nil {
			stop()
			return err
		}
	}
	stop()
	result.Verdict = report.Worst(result.Tables)
	if len(result.NotCompared) > 0 && result.Verdict == report.Equal {
		result.Verdict = report.Unproven
	}
	about := report.PageOptions{Pipeline: cfg.Pipeline, Version: a.Version, File: o.differences, ShowData: o.Values,
		Made: time.Now()}
	if err := files.finish(about, result.Tables); err != nil {
		return err
	}
	return printVerified(a, &result, o.differences)
}

// verifyFiles are the files that verify writes; nil where they are not wanted.
type verifyFiles struct {
	differences *outputFile
	html        *htmlPage
}

// openFiles begins the files, and has the differences written to them.
func (o *verifyFlags) openFiles(a *cli.App) (f verifyFiles, err error) {
	if o.differences != "" {
		if f.differences, err = openOutput(a, o.differences, "file of differences", "--differences"); err != nil {
			return f, err
		}
		o.Lines = f.differences
	}
	if o.html != "" {
		if f.html, err = openPage(a, o.html); err != nil {
			f.close()
			return f, err
		}
		o.Lines = f.html.lines(o.Lines)
	}
	return f, nil
}

// finish completes the files.
func (f *verifyFiles) finish(about report.PageOptions, tables []report.Table) error {
	if f.differences != nil {
		if err := f.differences.finish(0o600); err != nil {
			return err
		}
	}
	if f.html != nil {
		return f.html.finish(about, tables)
	}
	return nil
}

// close removes what is not complete.
func (f *verifyFiles) close() {
	if f.differences != nil {
		f.differences.close()
	}
	if f.html != nil {
		f.html.close()
	}
}

// compare compares a target in the way that the flags say.
func (o *verifyFlags) compare(ctx context.Context, cfg *config.Config, s *pair.Pair) ([]report.Table, error) {
	switch {
	case o.N > 0:
		return audit.Sample(ctx, s, o.SampleOptions)
	case o.since == "":
		return audit.Full(ctx, cfg, s, o.Options)
	case o.since == "last":
		return audit.Since(ctx, cfg, s, o.Options, time.Time{})
	}
	since, err := timeOf(o.since, s.Now().Time())
	if err != nil {
		return nil, err
	}
	return audit.Since(ctx, cfg, s, o.Options, since)
}

// timeOf reads a time, or how long ago it was.
func timeOf(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	const hint = "last, a time such as 2026-05-04T13:00:00Z, or how long ago, such as 2h"
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err == nil && at.After(now):
		return at, failure.Usagef(hint, "%s is in the future: it is %s", text, now.UTC().Format(time.RFC3339))
	case err == nil:
		return at, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04",
		time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, failure.Usagef("write "+at.Format(time.RFC3339)+" for UTC, or "+at.Format("2006-01-02T15:04:05")+
				"+02:00 for a zone two hours east of it", "%q has no time zone", text)
		}
	}
	return at, failure.Usagef(hint, "%q is not a time", text)
}

// showProgress shows how far the comparison is, on a terminal, until the returned function is
// called.
func (o *verifyFlags) showProgress(a *cli.App) (stop func()) {
	if !a.ShowsBars() {
		return func() {}
	}
	drawn, began, doing := render.NewBars(a.Errs), time.Now(), ""
	o.Progress = func(s audit.Step) {
		if s.Doing != doing { // settling has a rate of its own
			began, doing = time.Now(), s.Doing
		}
		drawn.Show([]render.Step{verifyStep(s, time.Since(began))})
	}
	o.Say = func(line string) { fmt.Fprintln(drawn, line) }
	return drawn.Close
}

// verifyStep returns a step as a bar. The estimate is the service's count, up to six hours old.
func verifyStep(s audit.Step, took time.Duration) render.Step {
	rate := float64(s.Items) / max(took.Seconds(), 0.001)
	if s.Doing == "ranges" { // of workers, in no even time
		return render.Step{Name: "comparing", Text: fmt.Sprintf("%d of %s compared by workers", s.Items,
			english.Plural(int(s.Estimate), "range", "")), Percent: min(99, 100*float64(s.Items)/float64(s.Estimate))}
	}
	text := fmt.Sprintf("%s, %s/s", english.Plural(int(s.Items), "item", ""), humanize.Comma(int64(rate)))
	step := render.Step{Name: s.Doing, Text: text}
	if s.Estimate > 0 {
		step.Percent = min(99, 100*float64(s.Items)/float64(s.Estimate))
		if left := float64(s.Estimate - s.Items); left > 0 && rate > 0 {
			step.Text += ", about " + time.Duration(left/rate*float64(time.Second)).Round(time.Second).String() + " left"
		}
	}
	return step
}

// printVerified prints the result. What is not equal is exit code 4; if all that was compared is
// equal, a table that was not compared is exit code 3.
func printVerified(a *cli.App, v *verified, file string) error {
	if a.JSON {
		if err := a.PrintJSON(v); err != nil {
			return err
		}
	} else {
		a.Printed = true
		for i := range v.Tables {
			printVerifiedTable(a.Out, &v.Tables[i])
		}
	}
	for _, n := range v.NotCompared {
		fmt.Fprintf(a.Errs, "%s is not compared: %s\n  next: %s\n", n.Table, n.Error, n.Hint)
	}
	switch report.Worst(v.Tables) {
	case report.Different, report.Unproven:
	case report.Equal:
		if len(v.NotCompared) > 0 {
			return failure.Reported(failure.Unready)
		}
		return nil
	}
	if file != "" && !a.JSON {
		a.Print("What is not equal is in %s. Next: `replicator explain --table NAME --key KEY` for one of its items.", file)
	} else if !a.JSON && slices.ContainsFunc(v.Tables, func(t report.Table) bool {
		return t.Different+t.Foreign+t.Refused+t.Unproven > 0 // else there is nothing to name
	}) {
		a.Print("Next: the same with --differences FILE names what is not equal.")
	}
	return failure.Reported(failure.Different)
}

// printVerifiedTable prints a sentence about a table, and its counts.
func printVerifiedTable(w io.Writer, t *report.Table) {
	fmt.Fprintln(w, t.Sentence())
	for _, c := range []struct {
		name string
		n    int64
	}{
		{"equal items", t.Equal}, {"equal by the log", t.ByLog}, {"different items", t.Different},
		{"unproven", t.Unproven}, {"refused items", t.Refused}, {"foreign cells", t.Foreign}, {"kept cells", t.Kept},
	} {
		if c.n > 0 {
			fmt.Fprintf(w, "  %-16s %s\n", c.name, humanize.Comma(c.n))
		}
	}
	fmt.Fprintf(w, "  %-16s %s\n", "proof", t.Proof.Sentence())
	printGroups(w, t.ByRule, "rule", "rows")
	printGroups(w, t.ByPrefix, "prefix")
}
