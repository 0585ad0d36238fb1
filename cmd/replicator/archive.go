package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/restore"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/transform"
)

// archiveCommands has a method for each command.
type archiveCommands struct{ *cli.App }

// archiveCommand returns the command `replicator archive`.
func (a *app) archiveCommand() *cobra.Command {
	c := &archiveCommands{a.App}
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "The archive of what expired: what is there, is it whole, which events; restore items",
		Long: `The archive holds the last image of each item that DynamoDB's time to live deleted, in objects by hour. These
commands read the store of archive.url, and need no running replicator. They write nothing, but for restore --yes: it
brings items back into DynamoDB.`,
		Args: a.NoArgs(),
	}
	cmd.AddCommand(c.listCommand(), c.verifyCommand(), c.queryCommand(), c.restoreCommand(), c.ddlCommand())
	return cmd
}

// listCommand returns the command `replicator archive list`.
func (a *archiveCommands) listCommand() *cobra.Command {
	var f archiveFlags
	var objects bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the hours of the archive, and whether they are closed", Args: a.NoArgs(),
		Long: `list prints a line for each class and hour: closed (a manifest names its objects), incomplete (closed, but
events were lost in a gap or a recovery), or open. With --objects it prints a line for each object.`,
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			s, err := a.open(ctx, &f)
			if err != nil {
				return err
			}
			defer s.close()
			a.Printed = true // an empty list is an answer
			w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
			if !a.JSON && !objects {
				fmt.Fprintln(w, "TABLE\tHOUR\tCLASS\tSTATE\tOBJECTS\tEVENTS\tSIZE")
			}
			for _, t := range s.tables {
				l, err := restore.List(ctx, s.bucket, t, s.in)
				if err != nil {
					return err
				}
				if err := a.printListing(w, t, l, objects); err != nil {
					return err
				}
				if l.Fault != "" {
					fmt.Fprintf(a.Errs, "%s: %s\n  next: `replicator archive verify --table %s`\n", t, l.Fault,
						cli.ShellQuote(t))
				}
			}
			return w.Flush()
		}),
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&objects, "objects", false, "a line for each object")
	return cmd
}

// printListing prints the hours or the objects of a table.
func (a *archiveCommands) printListing(w *tabwriter.Writer, table string, l *restore.Listing, objects bool) error {
	if objects {
		for i := range l.Objects {
			o := &l.Objects[i]
			if a.JSON {
				if err := a.PrintJSON(o); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintf(w, "%s\t%s events\t%s\n", o.Object, humanize.Comma(o.Events), humanize.Bytes(uint64(o.Bytes)))
		}
		return nil
	}
	for i := range l.Hours {
		h := &l.Hours[i]
		if a.JSON {
			if err := a.PrintJSON(h); err != nil {
				return err
			}
			continue
		}
		state := strings.Join(append([]string{h.State}, h.Incomplete...), " ")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", h.Table, h.Hour, h.Class, state, h.Objects, humanize.Comma(h.Events),
			humanize.Bytes(uint64(h.Bytes)))
	}
	if len(l.Hours) == 0 && !a.JSON {
		fmt.Fprintf(a.Errs, "%s: no object of the archive is of that time; `replicator status` counts what waits for one\n",
			table)
	}
	return nil
}

// verifyCommand returns the command `replicator archive verify`.
func (a *archiveCommands) verifyCommand() *cobra.Command {
	var f archiveFlags
	var full, quick bool
	cmd := &cobra.Command{
		Use: "verify", Short: "Compare the archive with its manifests: is it whole, unaltered, each event once",
		Long: `verify checks the chain of manifests, also against its end in the table's log, so that a cut-off end is found;
each object against its manifest; that no other object is in a closed hour; that no record is archived twice, and none
between two archived ones is missing; and that events, deletions and counts of each hour add up.

By default it reads every byte of each object; with --quick its size and footer; with --full also every event. The
verdict is unproven where nothing is wrong but something could not be shown: the queue could not be reached, deletions
were not counted, an hour is incomplete because of a gap. Exit 4: differences were found.`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			s, err := a.open(ctx, &f)
			if err != nil {
				return err
			}
			defer s.close()
			o := manifest.Options{Depth: manifest.Bytes}
			switch {
			case full:
				o.Depth = manifest.Full
			case quick:
				o.Depth = manifest.Quick
			}
			o.From, o.To = s.in.Hours()
			return a.verify(ctx, s, o)
		}),
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&full, "full", false, "read every event too")
	cmd.Flags().BoolVar(&quick, "quick", false, "read only the footer of each object")
	cmd.MarkFlagsMutuallyExclusive("full", "quick")
	return cmd
}

// verify compares the archive of each table, and prints the reports.
func (a *archiveCommands) verify(ctx context.Context, s *archiveScope, o manifest.Options) error {
	if !strings.HasPrefix(s.cfg.Archive.URL, "file:") { // far away: fetch each object once
		o.Scratch = s.cfg.Scratch
		if _, err := os.Stat(o.Scratch); err != nil {
			o.Scratch = os.TempDir()
		}
	}
	heads := a.heads(ctx, s)
	var all restore.Verified
	for _, t := range s.tables {
		o.Head = heads[t]
		progress, done := a.bar("verify " + t)
		o.Progress = func(p manifest.Progress) {
			progress(p.Bytes, p.AllBytes, fmt.Sprintf("%d of %d objects", p.Objects, p.AllObjects))
		}
		r, err := restore.Verify(ctx, s.bucket, t, o)
		done()
		if err != nil {
			return err
		}
		all.Add(r)
		if !a.JSON {
			a.Printed = true
			render.ArchiveReport(a.Out, r)
		}
	}
	if a.JSON {
		if err := a.PrintJSON(all); err != nil {
			return err
		}
	}
	if all.Verdict == manifest.Different {
		return failure.Reported(failure.Different)
	}
	return nil
}

// heads reads the ends of the chains from the logs, and warns on stderr where none answers: the
// archive is as it is without them. It closes the queue at once, so that a replicator can start
// while objects are read.
func (a *archiveCommands) heads(ctx context.Context, s *archiveScope) map[string]*manifest.Head {
	clients := a.Clients(s.cfg)
	defer clients.Close()
	q, err := clients.Queue(ctx)
	if err != nil {
		fmt.Fprintf(a.Errs, "%s: the queue cannot be reached: %v\n", a.Path, err)
		return nil
	}
	heads := map[string]*manifest.Head{}
	for _, t := range s.tables {
		if heads[t], err = restore.Head(ctx, q, t); err != nil {
			fmt.Fprintf(a.Errs, "%s: the log of %s cannot be read: %v\n", a.Path, t, err)
		}
	}
	return heads
}

// queryCommand returns the command `replicator archive query`.
func (a *archiveCommands) queryCommand() *cobra.Command {
	var f archiveFlags
	var key []string
	var class string
	cmd := &cobra.Command{
		Use: "query --table NAME", Short: "Print archived events, with their items, as JSON lines",
		Long: `query prints the events as CloudEvents, one on a line, the newest last: data.item is the item as it was when
it expired. --key names an item, or all items with a partition key. Only the objects of the hours and the class that are
asked for are read; without --from and --to those are all.`,
		Example: `  replicator archive query --table Sessions --key pk=hats --from 2026-05-04 --to 2026-05-05
  replicator archive query --table Sessions --key '{"pk":{"S":"hats"},"sk":{"N":"12"}}' | tail -1 | jq .data.item`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			if class != "" && !slices.Contains(restore.Classes, transform.EventClass(class)) {
				return failure.Usagef("ttl, user, inferred or healed", "%q is not a class of events", class)
			}
			k, err := restore.ParseKey(key)
			if err != nil {
				return err
			}
			s, err := a.open(ctx, &f)
			if err != nil {
				return err
			}
			defer s.close()
			q := restore.Query{Table: f.table, Time: s.in, Class: transform.EventClass(class), Key: k}
			progress, done := a.bar("query " + f.table)
			defer done()
			q.Progress = func(bytes, all int64) { progress(bytes, all, humanize.Bytes(uint64(bytes))) }
			a.Printed = true // no event is an answer
			return q.Run(ctx, s.bucket, func(line []byte) error {
				if _, err := a.Out.Write(append(line, '\n')); err != nil {
					return fmt.Errorf("write event: %w", err)
				}
				return nil
			})
		}),
	}
	f.register(cmd)
	cmd.Flags().StringArrayVar(&key, "key", nil, `an item's key: pk=hats, pk=hats,sk=12, or '{"pk":"hats","sk":12}'`)
	cmd.Flags().StringVar(&class, "class", "", "only ttl, user, inferred or healed")
	cli.Must(cmd.MarkFlagRequired("table"))
	return cmd
}
