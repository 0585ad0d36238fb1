package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/render"
	"github.com/tailrace-cdc/replicator/restore"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/source/putback"
	"github.com/tailrace-cdc/replicator/transform"
)

// restoreFlags are the flags of `archive restore`.
type restoreFlags struct {
	archiveFlags
	asOf, class, ttl, ttlAttr, differences string
	key                                    []string
	units, reads                           float64
	showData, yes                          bool
}

// restoreCommand returns the command `replicator archive restore`.
func (a *archiveCommands) restoreCommand() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use: "restore --table NAME [--ttl remove|keep|+30d] [--yes]", Short: "Bring archived items back into DynamoDB",
		Long: `restore writes items of the archive into their DynamoDB table, of each the newest event in the chosen time. It
writes nothing else: a running replicator carries them on, as every other change. An item that exists is never
overwritten; one that was re-created since is counted, and --differences names it.

Without --yes it is a dry run: it reads the archive and the table, and says what it would write and what that takes.

--ttl has no default where the table has a time to live or items carry an expiry. keep: as archived, so that an item
whose time is over expires again at once; remove: without the attribute; +30d: so long from now. Items that a user
deleted are restored by --class user only. Repeating the command is safe, and is how an interrupted one is continued:
items that are there already are read, not written.

Exit 4: some items were not restored, because they were re-created, DynamoDB refuses them, or the archive has none.`,
		Example: `  replicator archive restore --table Sessions --from 2026-05-04 --to 2026-05-05 --ttl +30d
  replicator archive restore --table Sessions --key pk=hats --as-of 2026-05-04T13:00:00Z --ttl remove --yes`,
		Args: a.NoArgs(),
		RunE: a.Body(func(ctx context.Context, _ []string) error { return a.restore(ctx, &f) }),
	}
	f.register(cmd)
	x := cmd.Flags()
	x.StringVar(&f.asOf, "as-of", "", "the newest event at or before this time")
	x.StringArrayVar(&f.key, "key", nil, `an item's key: pk=hats, pk=hats,sk=12, or '{"pk":"hats","sk":12}'`)
	x.StringVar(&f.class, "class", "", "only ttl, user, inferred or healed; without it all but user")
	x.StringVar(&f.ttl, "ttl", "", "the expiry of restored items: remove, keep, or from now, as in +30d or +12h")
	x.StringVar(&f.ttlAttr, "ttl-attribute", "", "the attribute with the expiry, where the table's time to live is off")
	x.Float64Var(&f.units, "write-units", 100, "write capacity units a second")
	x.Float64Var(&f.reads, "read-units", 0, "read capacity units a second, of looking which items exist; "+
		"without it as many as --write-units, and at least 500 or 25 % of what is provisioned")
	x.StringVar(&f.differences, "differences", "", "write what was not restored to this `FILE`, as JSON lines")
	x.BoolVar(&f.showData, "show-data", false, "print the keys of what was not restored")
	x.BoolVar(&f.yes, "yes", false, "write; without it, say what would be written")
	cli.Must(cmd.MarkFlagRequired("table"))
	cmd.MarkFlagsMutuallyExclusive("to", "as-of")
	return cmd
}

// restore restores items, or prints what it would restore.
func (a *archiveCommands) restore(ctx context.Context, f *restoreFlags) error {
	r, err := f.read()
	if err != nil {
		return err
	}
	s, err := a.open(ctx, &f.archiveFlags)
	if err != nil {
		return err
	}
	defer s.close()
	if r.Time, err = f.time(s.in); err != nil {
		return err
	}
	clients := a.Clients(s.cfg)
	defer clients.Close()
	if r.Source, err = clients.Source(ctx); err != nil {
		return err
	}
	if err := r.CheckTable(ctx, f.limits()); err != nil {
		return err
	}
	differ, finish, err := a.differ(f)
	if err != nil {
		return err
	}
	r.Differ = differ
	progress, done := a.bar("restore " + f.table)
	r.Progress = func(bytes, all int64) { progress(bytes, all, "of the archive, "+humanize.Bytes(uint64(bytes))) }
	out, err := r.Run(ctx, s.bucket)
	done()
	if closed := finish(); err == nil {
		err = closed
	}
	if err != nil {
		if out.Restored > 0 && f.yes {
			fmt.Fprintf(a.Errs, "%s: restored before this: %s; running it again goes on\n", a.Path,
				render.Count(int(out.Restored), "item"))
		}
		return err
	}
	if a.JSON {
		err = a.PrintJSON(out)
	} else {
		a.Print("%s", render.Restored(out, r.Into, f.units))
	}
	if err == nil && f.yes && out.Left() > 0 {
		return failure.Reported(failure.Different)
	}
	return err
}

// read reads the flags that need neither store nor table.
func (f *restoreFlags) read() (*restore.Restore, error) {
	r := &restore.Restore{Query: restore.Query{Table: f.table, Class: transform.EventClass(f.class)}, Now: time.Now()}
	if f.class != "" && !slices.Contains(restore.Classes, r.Class) {
		return nil, failure.Usagef("ttl, user, inferred or healed", "%q is not a class of events", f.class)
	}
	if f.units <= 0 || f.reads < 0 {
		return nil, failure.Usagef("such as 100", "--write-units and --read-units are above 0")
	}
	var err error
	if r.Key, err = restore.ParseKey(f.key); err != nil {
		return nil, err
	}
	if r.TTL, err = putback.ParseTTL(f.ttl); err != nil {
		return nil, failure.Usagef("--ttl remove, --ttl keep, or --ttl +30d", "--ttl: %w", err)
	}
	return r, nil
}

// limits returns what the flags say of the table and of its load.
func (f *restoreFlags) limits() restore.Limits {
	return restore.Limits{
		Table: f.table, TTL: f.ttl, TTLAttr: f.ttlAttr, WriteUnits: f.units, ReadUnits: f.reads, Write: f.yes,
	}
}

// time returns the chosen time: deletions are dated to the second, and the second of --as-of is
// included.
func (f *restoreFlags) time(in restore.Range) (restore.Range, error) {
	at, err := restore.ParseTime("--as-of", f.asOf, time.Now())
	if err != nil || at.IsZero() {
		return in, err
	}
	in.To = at.Truncate(time.Second).Add(time.Second)
	if !in.From.Before(in.To) {
		return in, failure.Usagef("--as-of is the end of the time", "--from is not before --as-of")
	}
	return in, nil
}

// differ returns what receives the items that are not restored, and what closes their file.
func (a *archiveCommands) differ(f *restoreFlags) (
	differ func(*restore.Difference) error, finish func() error, err error,
) {
	var file *os.File
	finish = func() error { return nil }
	if f.differences != "" {
		if file, err = os.OpenFile(f.differences, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err != nil {
			return nil, nil, failure.With(failure.Unready, "name a file in a directory that exists",
				fmt.Errorf("--differences: %w", err))
		}
		finish = func() error { return errors.Join(file.Sync(), file.Close()) }
	}
	return func(d *restore.Difference) error {
		if f.showData && !a.JSON {
			a.Print("%s %s", d.Outcome, d.Key)
		}
		if file == nil {
			return nil
		}
		return json.NewEncoder(file).Encode(d)
	}, finish, nil
}
