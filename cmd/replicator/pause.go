package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/control"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue"
)

// pauseCommand returns the command `replicator pause`.
func (a *app) pauseCommand() *cobra.Command {
	yes := true
	return a.controlCommand("pause", "Stop reading and applying a table, through its log",
		`pause writes into the table's log that the table is not to be read or applied until resume. The replicator that owns
the log stops within a moment, and one that takes the log over later does not start. DynamoDB keeps changes for 24 hours
only.`,
		"paused", checkpoint.Control{Pause: &yes})
}

// resumeCommand returns the command `replicator resume`.
func (a *app) resumeCommand() *cobra.Command {
	no := false
	return a.controlCommand("resume", "Clear a table's pause or halt, through its log",
		`resume ends a pause, retries a halted table at once, and accepts its gaps: reading goes on after them. What was lost
stays lost. Items that changed in a gap and not since stay older in Bigtable than in DynamoDB, and items that
were deleted in it stay in Bigtable. So status keeps showing since when rows differ, and the table is not ready, until
`+"`repair --gaps`"+` repairs that or `+"`gaps clear`"+` waives it.`,
		"resumed", checkpoint.Control{Pause: &no, Resume: true})
}

// controlCommand appends a control entry to the logs of one table or of all.
func (a *app) controlCommand(name, short, long, done string, control checkpoint.Control) *cobra.Command {
	var table string
	var all bool
	cmd := &cobra.Command{
		Use: name + " --table NAME | --all", Short: short, Long: long,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			if all == (table != "") {
				return failure.Usagef("`replicator "+name+" --table NAME` or `--all`", "%s needs one table, or --all", name)
			}
			cfg, err := a.Config(ctx)
			if err != nil {
				return err
			}
			tables, err := catalog.Select(cfg, table)
			if err != nil {
				return err
			}
			clients := a.Clients(cfg)
			defer clients.Close()
			q, err := clients.Queue(ctx)
			if err != nil {
				return err
			}
			var outcomes []controlled
			var errs []error // an error of one table does not stop the others
			for _, t := range tables {
				c, err := controlTable(ctx, q, t.Source, name, control)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				outcomes = append(outcomes, c)
				if !a.JSON {
					a.Print("%s is %s (entry %d of its log).", t.Source, done, c.Seq)
					if c.accepted != "" {
						a.Print("%s", c.accepted)
					}
				}
			}
			if a.JSON && all {
				err = a.PrintJSON(map[string]any{"schema": schema, "action": name, "tables": outcomes})
			} else if a.JSON && len(outcomes) == 1 {
				err = a.PrintJSON(outcomes[0])
			}
			return errors.Join(append(errs, err)...)
		}),
	}
	cmd.Flags().StringVar(&table, "table", "", "source table")
	cmd.Flags().BoolVar(&all, "all", false, "all tables of the configuration")
	return cmd
}

// controlled is what became of a control entry.
type controlled struct {
	Schema       int        `json:"schema"`
	Table        string     `json:"table"`
	Action       string     `json:"action"`
	Seq          uint64     `json:"seq"`
	DiffersSince *time.Time `json:"differs_since"`
	accepted     string     // not in JSON: what accepted gaps mean for the rows
}

// controlTable appends a control entry to a table's log, and returns what the log holds then.
func controlTable(
	ctx context.Context, q *queue.Queue, table, name string, entry checkpoint.Control,
) (c controlled, err error) {
	open := control.Open
	if entry.Resume {
		open = control.OpenUnread // which is what resume is for
	}
	l, err := open(ctx, q, table)
	if err != nil {
		return c, err
	}
	seq, err := l.Append(ctx, name, entry)
	if err != nil {
		return c, err
	}
	return controlled{
		Schema: schema, Table: table, Action: name, Seq: seq,
		DiffersSince: render.TimeOrNil(l.State.DiffersSince()), accepted: render.Accepted(l.State),
	}, nil
}
