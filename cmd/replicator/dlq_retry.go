package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
	"github.com/tailrace-cdc/replicator/source"
)

// retryCommand returns the command `replicator dlq retry`.
func (a *dlqCommands) retryCommand() *cobra.Command {
	var all, wait bool
	var some control.LetterFilter
	cmd := &cobra.Command{
		Use:   "retry (ID | --all | --table NAME | --code CODE | --sink SINK)",
		Short: "Apply dead letters again",
		Long: `retry asks the replicator that owns the table to try dead letters again, and waits until that is done: with ID
those of that letter's item, with --table, --code and --sink those of the items that have a letter of all of these.
The item is read and its rows are made true at a version a minute below the reading, which makes earlier letters
needless; letters of the last minute, and those that write what outlives their item, are applied
at their own versions, in order, up to the first that is refused. Letters of the archive go to the archive,
and those of archive.subject are published as they are.

A letter that was applied or is needless is deleted; one that is refused again stays, with one more attempt, and the
exit code is 4. Of a letter that is only too new, because the item is mended and the letter is less than a minute
older than the reading, retry says when to try again; with --wait it waits for that, and tries again itself.
Without a running owner nothing is tried: only the owner writes rows.`,
		Args: a.AtMostOneArg("ID"),
		RunE: a.Body(func(ctx context.Context, args []string) error {
			if err := chosenOnce("retry", args, all, some); err != nil {
				return err
			}
			id := ""
			if len(args) == 1 {
				id = args[0]
			}
			return a.retry(ctx, id, some, wait)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters, oldest first")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for letters that are too new, and try them again")
	chooseLetters(cmd, &some)
	return cmd
}

// retry has the letters of one letter's item tried again, or those that a filter chooses when id is
// empty. With wait it tries those a second time that are only too new for the first one.
func (a *dlqCommands) retry(ctx context.Context, id string, some control.LetterFilter, wait bool) error {
	cfg, err := a.Config(ctx)
	if err != nil {
		return err
	}
	r := &retrying{dlqCommands: a, cfg: cfg, id: id, table: some.Table, only: some.Match}
	retried, err := r.once(ctx)
	if err != nil && retried == nil {
		return err
	}
	if err == nil && wait && retried.Later > 0 {
		if err = r.await(ctx, retried); err == nil {
			var again *control.RetriedLetters
			again, err = r.once(ctx)
			retried = retried.Then(again)
		}
	}
	line := render.RetriedOf(cli.Schema, &retried.Outcome)
	if a.JSON {
		err = errors.Join(err, a.PrintJSON(line))
	} else {
		a.Printed = true
		line.Print(a.Out, retried.Notes, retried.Unreadable)
	}
	if err == nil && retried.Refused > 0 {
		return failure.Reported(failure.Different)
	}
	return err
}

// retrying is a retry of the letters that the command chooses. Each try opens the letters again,
// because the daemon with their server may start again while the command waits.
type retrying struct {
	*dlqCommands
	cfg   *config.Config
	id    string // of a letter of the item; "" once table and only say which, or if none is
	table string
	only  func(*deadletter.Letter) bool
	asked string // a table with letters, from which DynamoDB's time is learned
}

// once tries the letters. The result is nil if an error came before the first try.
func (r *retrying) once(ctx context.Context) (*control.RetriedLetters, error) {
	clients, all, err := r.OpenLetters(ctx, r.cfg, r.table)
	if err != nil {
		return nil, err
	}
	defer clients.Close()
	if r.id != "" {
		t, letter, err := control.FindLetter(ctx, all, r.id)
		if err != nil {
			return nil, err
		}
		all = []control.LettersOf{t}
		r.id, r.table = "", t.Source
		r.only = func(l *deadletter.Letter) bool { return l.ID == letter.ID || l.KeyHash == letter.KeyHash }
	}
	if len(all) > 0 {
		r.asked = all[0].Source
	}
	requester := func(table string) *control.Requester { return r.Requester(r.cfg, clients, table) }
	retried, err := control.RetryLetters(ctx, all, r.only, requester)
	if err != nil && retried.Empty() {
		return nil, err
	}
	return retried, err
}

// clockPeriod is the time between two looks at DynamoDB's clock while the command waits for it.
const clockPeriod = 2 * time.Second

// await waits until the letters that are too new can be tried again, by DynamoDB's clock.
func (r *retrying) await(ctx context.Context, retried *control.RetriedLetters) error {
	fmt.Fprintf(r.Errs, "waiting until %s to try %s again\n", render.ClockTime(retried.Until),
		render.Count(int(retried.Later), "letter"))
	clients := r.Clients(r.cfg)
	defer clients.Close()
	for {
		if err := clients.ReadClock(ctx, r.asked); err != nil {
			return source.Explain(err)
		}
		left := retried.Until.Sub(clients.Now())
		if left <= 0 {
			return nil
		}
		if err := failure.Pause(ctx, min(left, clockPeriod)); err != nil {
			return err
		}
	}
}
