package render

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/cutover"
)

// Kept lists what the replicator keeps of a table, which a retirement takes away.
func Kept(out io.Writer, k *cutover.Kept) {
	if k.Nothing() {
		fmt.Fprintf(out, "Nothing is kept of table %s.\n", k.Table)
		if k.Retired != nil && k.Guards == nil {
			fmt.Fprintf(out, "It was retired before; guards of it may be left in %s (--drop-guards).\n", k.Target)
		}
		return
	}
	fmt.Fprintf(out, "Kept of table %s, and deleted by retire:\n", k.Table)
	for _, s := range k.Streams {
		fmt.Fprintf(out, "  %-9s %s, %s, in stream %s\n", s.What, english.Plural(int(s.Messages), "message", ""),
			humanize.IBytes(s.Bytes), s.Stream)
	}
	if u := k.Unapplied; u != nil {
		fmt.Fprintf(out, "  changes   %s in the log since %s that Bigtable never gets\n",
			english.Plural(int(u.Changes), "change", ""), u.Since.Format(time.RFC3339))
	}
	for _, dir := range k.Files {
		fmt.Fprintf(out, "  files     in %s\n", dir)
	}
	if g := k.Guards; g != nil {
		fmt.Fprintf(out, "  guards    %s in %s of %s; %s\n", english.Plural(int(g.Cells), "cell", ""),
			english.Plural(int(g.Rows), "row", ""), k.Target,
			english.Plural(int(g.Others+g.Unknown), "of others stays", "of others stay"))
	}
	if k.Row {
		fmt.Fprintf(out, "  row       of its state, last\n")
	}
	if k.Guards == nil && k.Target != "" {
		fmt.Fprintf(out, "The guards in %s stay; the same command with --drop-guards deletes them, now or later.\n", k.Target)
	}
}
