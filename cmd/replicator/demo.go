package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/demo"
	"github.com/tailrace-cdc/replicator/failure"
)

// demoCommand returns the command `replicator demo`.
func (a *app) demoCommand() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run everything on this machine: copy, write, split, kill, resume, compare every cell",
		Long: `demo starts a sandbox (DynamoDB with streams, Bigtable) in this process and the replicator as a process of its
own. The tables, a product catalogue and those of all worked examples of the mapping language, hold items already, which
the replicator copies while applications write to the same tables. Shards split and rotate under them; the replicator
is killed with kill -9 and started again, the first time while it copies. Then the writers stop, and every item is
compared with every row, cell by cell. In the end the catalogue is cut over: a fence, a comparison, a certificate, and
its check. Exit 4 if anything differs.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.demo(ctx, o) }),
	}
	f := cmd.Flags()
	f.DurationVar(&o.Duration, "duration", 8*time.Second, "how long the applications write")
	f.IntVar(&o.Rate, "rate", 2000, "writes a second, all tables together")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of everything random")
	f.IntVar(&o.Kills, "kills", 2, "how often the replicator is killed")
	f.StringVar(&o.Dir, "keep", "", "keep configuration, log and archive in this directory")
	return cmd
}

// demo runs the steps of the demo and prints the summary.
func (a *app) demo(ctx context.Context, o demo.Options) (err error) {
	if o.Duration < time.Second || o.Rate < 1 || o.Kills < 0 {
		return failure.Usagef("for example --duration 30s --rate 2000 --kills 2",
			"demo needs a --duration of at least 1s, a --rate of at least 1, and --kills of at least 0")
	}
	screen := &demoScreen{a: a, duration: o.Duration}
	o.Logger, o.Say, o.Progress = a.Logger, screen.say, screen.progress
	stage, err := demo.New(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	if err := stage.Prepare(ctx); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	screen.open()
	err = stage.Play(ctx)
	screen.close()
	if err != nil {
		return a.withLogTail(stage, err)
	}
	if err := stage.Drain(ctx); err != nil {
		return a.withLogTail(stage, err)
	}
	summary, err := stage.Conclude(ctx)
	if err != nil {
		return a.withLogTail(stage, err)
	}
	if err := stage.Stop(ctx); err != nil {
		return a.withLogTail(stage, err)
	}
	if err := a.printSummary(summary); err != nil {
		return err
	}
	if !summary.Equal {
		return failure.Reported(failure.Different)
	}
	return nil
}

// withLogTail prints the end of the replicator's log and returns err.
func (a *app) withLogTail(stage *demo.Stage, err error) error {
	if lines := stage.LogTail(); len(lines) > 0 {
		fmt.Fprintf(a.Errs, "the end of the replicator's log:\n%s\n", strings.Join(lines, "\n"))
	}
	return err
}

// demoScreen shows the progress of a demo: as JSON, as a moving bar on a terminal, or as lines.
type demoScreen struct {
	a        *app
	duration time.Duration
	bar      *render.Bars // nil: the applications do not write, or progress is printed as lines
}

func (s *demoScreen) open() {
	if s.a.ShowsBars() {
		s.bar = render.NewBars(s.a.Errs)
	}
}

func (s *demoScreen) close() {
	if s.bar != nil {
		s.bar.Close()
		s.bar = nil
	}
}

func (s *demoScreen) say(line string) {
	if s.bar != nil {
		fmt.Fprintln(s.bar, line)
		return
	}
	fmt.Fprintln(s.a.Errs, line)
}

func (s *demoScreen) progress(p *demo.Progress) error {
	p.Schema = schema
	switch {
	case s.a.JSON:
		return s.a.PrintJSON(p)
	case s.bar != nil:
		s.bar.Show([]render.Step{{Name: "writing", Percent: 100 * p.Elapsed / s.duration.Seconds(), Text: p.String()}})
	default:
		s.say(fmt.Sprintf("%4.0f s  %s", p.Elapsed, p))
	}
	return nil
}

// printSummary prints the last line of the demo.
func (a *app) printSummary(s *demo.Summary) error {
	if a.JSON {
		s.Schema = schema
		return a.PrintJSON(s)
	}
	a.Print("%s · %s items copied · %s changes · %s rows · %s cells · %s · %s · %s", render.Count(s.Tables, "table"),
		humanize.Comma(s.Copied), humanize.Comma(int64(s.Changes)), humanize.Comma(s.Rows), humanize.Comma(s.Cells),
		render.Count(s.Kills, "kill"), render.Count(int(s.Splits), "split"), render.Count(int(s.Differences), "difference"))
	if c := s.Cutover; c != nil {
		a.Print("cutover %s: %s is certified equal, %s items (SHA-256 of the certificate: %.12s…)", c.ID, c.Target,
			humanize.Comma(c.Items), c.SHA256)
	}
	if s.Expired != s.Archived || s.DeadLetters > 0 || s.Gaps > 0 {
		a.Print("NOT equal: %d expired, %d archived, %d dead letters, %d gaps", s.Expired, s.Archived, s.DeadLetters, s.Gaps)
	}
	return nil
}
