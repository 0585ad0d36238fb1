package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/exit"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/queue"
)

func (a *app) dlqCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "List, show, retry and drop dead letters",
		Long: `A dead letter is a change that the mapping or Bigtable refused for good. It is kept with its reason until it was
applied (retry) or somebody decided to lose it (drop). A table is not ready while any is open.`,
		Args: a.args(cobra.NoArgs),
	}
	cmd.AddCommand(a.dlqListCommand(), a.dlqShowCommand(), a.dlqRetryCommand(), a.dlqDropCommand())
	return cmd
}

// letterLine is a dead letter as it is printed: without the item, unless that was asked for.
type letterLine struct {
	Schema    int             `json:"schema"`
	ID        string          `json:"id"`
	Table     string          `json:"table"`
	Sink      string          `json:"sink"`
	Op        string          `json:"op"`
	KeyHash   string          `json:"key_hash"`
	Version   int64           `json:"version"`
	Code      string          `json:"code"`
	Reason    string          `json:"reason"`
	Attempts  int             `json:"attempts"`
	FirstSeen time.Time       `json:"first_seen"`
	LastTried time.Time       `json:"last_tried"`
	Shard     string          `json:"shard"`
	Record    json.RawMessage `json:"record,omitempty"`
}

func lineOf(l *queue.Letter, showData bool) letterLine {
	line := letterLine{Schema: schema, ID: l.ID, Table: l.Table, Sink: l.Sink, Op: l.Op.String(), KeyHash: hashText(l.KeyHash), Version: l.Version,
		Code: l.Code, Reason: l.Reason, Attempts: l.Attempts, FirstSeen: l.FirstSeen, LastTried: l.LastTried, Shard: l.Feed.Shard}
	if showData {
		line.Record = bytes.Clone(l.Raw)
	}
	return line
}

// letterBox is the dead letters of one table.
type letterBox struct {
	table   config.Table
	queue   *queue.Queue
	created time.Time // of the log
	letters *queue.Letters
}

// letterBoxes opens the dead letters of the tables that have a log; close when done.
func (a *app) letterBoxes(ctx context.Context, table string) (cfg *config.Config, boxes []letterBox, done func(), err error) {
	if cfg, err = a.config(); err != nil {
		return nil, nil, nil, err
	}
	tables, err := selected(cfg, table)
	if err != nil {
		return nil, nil, nil, err
	}
	q, err := a.client(ctx, cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	done = func() { q.Close() }
	for _, t := range tables {
		log, err := q.Log(ctx, t.Source)
		if errors.Is(err, queue.ErrNoLog) {
			continue
		}
		var letters *queue.Letters
		if err == nil {
			letters, err = log.ExistingLetters(ctx)
		}
		if err != nil {
			done()
			return nil, nil, nil, exit.Environment(fmt.Errorf("open dead letters of %s: %w", t.Source, err), "see `replicator check`")
		}
		if letters == nil {
			continue // the replicator has not got so far as to make their stream
		}
		boxes = append(boxes, letterBox{t, q, log.Created(), letters})
	}
	return cfg, boxes, done, nil
}

func (a *app) dlqListCommand() *cobra.Command {
	var table string
	cmd := &cobra.Command{
		Use: "list", Short: "List the dead letters, oldest first", Args: a.args(cobra.NoArgs),
		RunE: a.body(func(ctx context.Context, _ []string) error {
			_, boxes, done, err := a.letterBoxes(ctx, table)
			if err != nil {
				return err
			}
			defer done()
			n := 0
			w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			for _, box := range boxes {
				for l, err := range box.letters.All(ctx) {
					if err != nil {
						return fmt.Errorf("list dead letters of %s: %w", box.table.Source, err)
					}
					n++
					if a.json {
						if err := a.printJSON(lineOf(l, false)); err != nil {
							return err
						}
						continue
					}
					if n == 1 {
						fmt.Fprintln(w, "ID\tTABLE\tSINK\tSINCE\tTRIED\tCODE\tREASON")
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", l.ID, l.Table, l.Sink, l.FirstSeen.Local().Format(time.DateTime),
						l.Attempts+1, l.Code, l.Reason)
				}
			}
			a.printed = true // an empty list is an answer
			if n == 0 && !a.json {
				a.print("No dead letters.")
			}
			return w.Flush()
		}),
	}
	cmd.Flags().StringVar(&table, "table", "", "only this source table")
	return cmd
}

func (a *app) dlqShowCommand() *cobra.Command {
	var showData bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show one dead letter", Args: a.args(cobra.ExactArgs(1)),
		RunE: a.body(func(ctx context.Context, args []string) error {
			_, boxes, done, err := a.letterBoxes(ctx, "")
			if err != nil {
				return err
			}
			defer done()
			_, letter, err := findLetter(ctx, boxes, args[0])
			if err != nil {
				return err
			}
			line := lineOf(letter, showData)
			if a.json {
				return a.printJSON(line)
			}
			a.print("%s: %s of %s, version %d, key hash %s", line.ID, line.Op, line.Table, line.Version, line.KeyHash)
			a.print("  refused by %s: %s (%s)", line.Sink, line.Reason, line.Code)
			a.print("  first %s, tried %s, last %s", line.FirstSeen.Local().Format(time.DateTime), render.Count(line.Attempts+1, "time"),
				line.LastTried.Local().Format(time.DateTime))
			a.print("  shard %s", line.Shard)
			if showData {
				a.print("%s", line.Record)
			} else {
				a.print("  --show-data prints the item")
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&showData, "show-data", false, "print the whole record")
	return cmd
}

func findLetter(ctx context.Context, boxes []letterBox, id string) (letterBox, *queue.Letter, error) {
	for _, box := range boxes {
		letter, err := box.letters.Get(ctx, id)
		if errors.Is(err, queue.ErrNoLetter) {
			continue
		}
		if err != nil {
			return box, nil, fmt.Errorf("read dead letter: %w", err)
		}
		return box, letter, nil
	}
	return letterBox{}, nil, &exit.Error{Code: exit.CodeRuntime, Err: fmt.Errorf("no dead letter %q", id), Hint: "`replicator dlq list` shows them"}
}

func (a *app) dlqDropCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "drop ID --yes", Short: "Delete a dead letter for good: its change will never be applied", Args: a.args(cobra.ExactArgs(1)),
		RunE: a.body(func(ctx context.Context, args []string) error {
			if !yes {
				return exit.Usage("repeat it with --yes if the change may be lost", "drop loses a change for good")
			}
			_, boxes, done, err := a.letterBoxes(ctx, "")
			if err != nil {
				return err
			}
			defer done()
			box, letter, err := findLetter(ctx, boxes, args[0])
			if err != nil {
				return err
			}
			if err := box.letters.Drop(ctx, letter.ID); err != nil {
				return fmt.Errorf("drop dead letter: %w", err)
			}
			if a.json {
				return a.printJSON(map[string]any{"schema": schema, "id": letter.ID, "table": letter.Table, "dropped": true})
			}
			a.print("Dropped %s of %s.", letter.ID, letter.Table)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "lose the change")
	return cmd
}
