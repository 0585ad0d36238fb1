package main

import (
	"context"

	"github.com/spf13/cobra"
)

// repairCommand returns the command `replicator repair`.
func (a *app) repairCommand() *cobra.Command {
	var s selection
	var yes bool
	cmd := &cobra.Command{
		Use:   "repair (--table NAME | --keys FILE|- | --from FILE | --from-export URL | --gaps [ID...]) [--no-wait]",
		Short: "Make rows true again: of a table, of gaps, or of single items",
		Long: `repair makes rows equal to their items again, waits until that is done, and reports the result. The
replicator that owns the table reads each item strongly; the stream runs on. For a table and for gaps it writes the
rows that differ, for single items all their rows.

--table alone compares the whole table with Bigtable, once, within the read budget of its backfill block. --gaps does
that for every table with gaps of which Bigtable differs, or for those with the given ids: it accepts the gaps, so that
reading goes on after them, and they are healed when every difference was repaired and found equal afterwards.

--from takes the differences that verify --differences wrote. --keys takes a file with one JSON object per line: plain
as in {"pk":"hats","n":12}, in DynamoDB's typed notation, or whole items; - reads stdin. --from-export takes the items
that changed in the window of an incremental export (file://, s3:// or gs://). Of these, repair reads both sides again,
and lists which are repaired, hot (a newer write keeps the difference until the time that is named), refused, or
unproven.
They heal no gap.

Run it with --dry-run first: it lists what would be compared, and changes nothing. With --no-wait it prints the ids of
its requests and does not wait for their results.

With --delete-foreign --yes, cells that belong to no item are deleted, column by column, where the differences name
them, where no item may own them by now, and where they are older than the command. Rows of other pipelines and families
outside of the mappings are never touched.

Exit 4: something is hot, refused, unproven, still different, or was not deleted with --delete-foreign. Repeating the
command is safe.`,
		RunE: a.Body(func(ctx context.Context, ids []string) error {
			s.ids = ids
			p, err := s.plan()
			if err != nil {
				return err
			}
			return a.repair(ctx, p, yes)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&s.table, "table", "", "source table; of keys (default: the only one), an export or gaps (default: all)")
	f.StringVar(&s.keys, "keys", "", "file with the keys of items, - for stdin")
	f.StringVar(&s.from, "from", "", "`FILE` of differences, as verify --differences writes it")
	f.StringVar(&s.export, "from-export", "", "incremental export with the keys of items, by `URL`")
	f.BoolVar(&s.gaps, "gaps", false, "the tables with gaps, or with the gaps of the given ids")
	f.BoolVar(&s.noWait, "no-wait", false, "print the ids of what was asked for, and do not wait")
	f.BoolVar(&s.dryRun, "dry-run", false, "list what would be compared, and change nothing")
	f.BoolVar(&s.deleteForeign, "delete-foreign", false, "with --from: delete cells that belong to no item")
	f.BoolVar(&yes, "yes", false, "with --delete-foreign: do not ask")
	return cmd
}

// repair carries out a plan. yes is the consent to the deletion of foreign cells.
func (a *app) repair(ctx context.Context, p *repairPlan, yes bool) error {
	if p.over == overItems {
		return a.repairItems(ctx, p, yes)
	}
	return a.repairTables(ctx, p)
}
