package archived

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/bars"
	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/transform"
)

// commands has a method for each command.
type commands struct{ *cli.App }

// Command returns the command `replicator archive`.
func Command(app *cli.App) *cobra.Command {
	a := &commands{app}
	cmd := &cobra.Command{
		Use:   "archive",
		Short: "The archive of what expired: what is there, is it whole, which events; restore items",
		Long: `The archive holds the last image of each item that DynamoDB's time to live deleted, in objects by hour. These
commands read the store of archive.url, and need no running replicator. They write nothing, but for restore --yes: it
brings items back into DynamoDB.`,
		Args: a.Args(cobra.NoArgs),
	}
	cmd.AddCommand(a.listCommand(), a.verifyCommand(), a.queryCommand(), a.restoreCommand(), a.ddlCommand())
	return cmd
}

// flags are the flags that all of these commands have.
type flags struct{ table, from, to string }

func (f *flags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.table, "table", "", "only this source table")
	cmd.Flags().StringVar(&f.from, "from", "", "a time (UTC), a day, an hour (2026-05-04T13), or how long ago (36h, 30d)")
	cmd.Flags().StringVar(&f.to, "to", "", "the end of the time, not included")
}

// scope is what a command works on: the tables, the time, and the opened store.
type scope struct {
	cfg    *config.Config
	tables []string
	in     Range
	bucket bucket.Bucket
}

// close closes the store. Its error is ignored, because nothing was written.
func (s *scope) close() { _ = s.bucket.Close() }

// open opens the store and reads the flags.
func (a *commands) open(ctx context.Context, f *flags) (*scope, error) {
	cfg, err := a.Config(ctx)
	if err != nil {
		return nil, err
	}
	s := &scope{cfg: cfg}
	if s.in, err = ParseRange(f.from, f.to, time.Now()); err != nil {
		return nil, err
	}
	if s.bucket, err = Open(ctx, cfg); err != nil {
		return nil, err
	}
	if s.tables, err = tables(ctx, s.bucket, cfg, f.table); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// listCommand returns the command `replicator archive list`.
func (a *commands) listCommand() *cobra.Command {
	var f flags
	var objects bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the hours of the archive, and whether they are closed", Args: a.Args(cobra.NoArgs),
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
				l, err := List(ctx, s.bucket, t, s.in)
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
func (a *commands) printListing(w *tabwriter.Writer, table string, l *Listing, objects bool) error {
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
		fmt.Fprintf(a.Errs, "%s: the archive has nothing of that time\n", table)
	}
	return nil
}

// verifyCommand returns the command `replicator archive verify`.
func (a *commands) verifyCommand() *cobra.Command {
	var f flags
	var full, quick bool
	cmd := &cobra.Command{
		Use: "verify", Short: "Compare the archive with its manifests: is it whole, unaltered, each event once",
		Long: `verify checks the chain of manifests, also against its end in the table's log, so that a cut-off end is found;
each object against its manifest; that no other object is in a closed hour; that no record is archived twice, and none
between two archived ones is missing; and that events, deletions and counts of each hour add up.

By default it reads every byte of each object; with --quick its size and footer; with --full also every event. The
verdict is unproven where nothing is wrong but something could not be shown: the queue could not be reached, deletions
were not counted, an hour is incomplete because of a gap. Exit 4: differences were found.`,
		Args: a.Args(cobra.NoArgs),
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
func (a *commands) verify(ctx context.Context, s *scope, o manifest.Options) error {
	if !strings.HasPrefix(s.cfg.Archive.URL, "file:") { // far away: fetch each object once
		o.Scratch = s.cfg.Scratch
		if _, err := os.Stat(o.Scratch); err != nil {
			o.Scratch = os.TempDir()
		}
	}
	heads := a.heads(ctx, s)
	var all Verified
	for _, t := range s.tables {
		o.Head = heads[t]
		progress, done := a.bar("verify " + t)
		o.Progress = func(p manifest.Progress) {
			progress(p.Bytes, p.AllBytes, fmt.Sprintf("%d of %d objects", p.Objects, p.AllObjects))
		}
		r, err := Verify(ctx, s.bucket, t, o)
		done()
		if err != nil {
			return err
		}
		all.Add(r)
		if !a.JSON {
			a.Printed = true
			Print(a.Out, r)
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

// heads asks the logs for the ends of the chains, and says on stderr where none answers: the archive is as it is
// without them. It closes the queue at once, so that a replicator can start while objects are read.
func (a *commands) heads(ctx context.Context, s *scope) map[string]*manifest.Head {
	clients := a.Clients(s.cfg)
	defer clients.Close()
	q, err := clients.Queue(ctx)
	if err != nil {
		fmt.Fprintf(a.Errs, "%s: the queue cannot be reached: %v\n", a.Path, err)
		return nil
	}
	heads := map[string]*manifest.Head{}
	for _, t := range s.tables {
		if heads[t], err = Head(ctx, q, t); err != nil {
			fmt.Fprintf(a.Errs, "%s: the log of %s cannot be read: %v\n", a.Path, t, err)
		}
	}
	return heads
}

// bar returns what shows a bar on a terminal, and what removes it.
func (a *commands) bar(name string) (show func(done, all int64, text string), remove func()) {
	if !a.ShowsBars() {
		return func(int64, int64, string) {}, func() {}
	}
	drawn, began := bars.New(a.Errs), time.Now()
	return func(done, all int64, text string) {
		rate := float64(done) / max(time.Since(began).Seconds(), 0.001)
		drawn.Show([]bars.Step{{Name: name, Percent: 100 * float64(done) / float64(max(all, 1)),
			Text: fmt.Sprintf("%s, %s/s", text, humanize.Bytes(uint64(rate)))}})
	}, drawn.Close
}

// queryCommand returns the command `replicator archive query`.
func (a *commands) queryCommand() *cobra.Command {
	var f flags
	var key []string
	var class string
	cmd := &cobra.Command{
		Use: "query --table NAME", Short: "Print archived events, with their items, as JSON lines",
		Long: `query prints the events as CloudEvents, one on a line, the newest last: data.item is the item as it was when
it expired. --key names an item, or all items with a partition key. Only the objects of the hours and the class that are
asked for are read; without --from and --to those are all.`,
		Example: `  replicator archive query --table Sessions --key pk=hats --from 2026-05-04 --to 2026-05-05
  replicator archive query --table Sessions --key '{"pk":{"S":"hats"},"sk":{"N":"12"}}' | tail -1 | jq .data.item`,
		Args: a.Args(cobra.NoArgs),
		RunE: a.Body(func(ctx context.Context, _ []string) error {
			if class != "" && !slices.Contains(Classes, transform.EventClass(class)) {
				return failure.Usagef("ttl, user, inferred or healed", "%q is not a class of events", class)
			}
			k, err := ParseKey(key)
			if err != nil {
				return err
			}
			s, err := a.open(ctx, &f)
			if err != nil {
				return err
			}
			defer s.close()
			q := Query{Table: f.table, Time: s.in, Class: transform.EventClass(class), Key: k}
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
	cmd.Flags().StringArrayVar(&key, "key", nil, `an item's key: '{"pk":"hats"}', or pk=hats, once for each attribute`)
	cmd.Flags().StringVar(&class, "class", "", "only ttl, user, inferred or healed")
	cli.Must(cmd.MarkFlagRequired("table"))
	return cmd
}
