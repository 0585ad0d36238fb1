package retiring

import (
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
)

// Print says what is kept of a table.
func (k *Kept) Print(out io.Writer) {
	if k.Nothing() {
		fmt.Fprintf(out, "Nothing is kept of table %s.\n", k.Table)
		return
	}
	fmt.Fprintf(out, "Kept of table %s, and deleted by retire:\n", k.Table)
	for _, s := range k.Streams {
		fmt.Fprintf(out, "  %-9s %s messages, %s, in stream %s\n", s.What, humanize.Comma(int64(s.Messages)),
			humanize.IBytes(s.Bytes), s.Stream)
	}
	for _, dir := range k.Files {
		fmt.Fprintf(out, "  files     in %s\n", dir)
	}
	if g := k.Guards; g != nil {
		fmt.Fprintf(out, "  guards    %s cells in %s rows of %s; %s of others stay\n", humanize.Comma(g.Cells),
			humanize.Comma(g.Rows), k.Target, humanize.Comma(g.Others+g.Unknown))
	}
	if k.Row {
		fmt.Fprintf(out, "  row       in tailrace_state, last\n")
	}
	if k.Guards == nil && k.Target != "" {
		fmt.Fprintf(out, "The guards in %s stay (--drop-guards).\n", k.Target)
	}
}
