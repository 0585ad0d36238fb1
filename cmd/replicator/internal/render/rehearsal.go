package render

import (
	"fmt"
	"io"
	"time"

	"github.com/tailrace-cdc/replicator/cutover"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

// Rehearsal writes what a rehearsed cutover has shown.
func Rehearsal(out io.Writer, r *cutover.Rehearsal) {
	words := map[string]string{
		cutover.StepCheck: "may it begin?", cutover.StepQuiet: "writers are quiet", cutover.StepDrain: "drained",
		cutover.StepCompare: "compared", cutover.StepBehind: "looked behind", cutover.StepHeart: "heartbeats",
	}
	for _, s := range r.Steps {
		fmt.Fprintf(out, "%-18s %s", words[s.Name], seconds(s.Seconds))
		switch {
		case s.Name == cutover.StepQuiet:
			fmt.Fprintf(out, "  (--quiet %s, and until that is read)", seconds(r.Quiet.Wanted))
		case s.Name == cutover.StepCompare && r.How != "":
			fmt.Fprintf(out, "  (%s, %s)", Count(int(r.Items), "item"), r.How)
		}
		fmt.Fprintln(out)
	}
	if r.Quiet.Window > 0 {
		fmt.Fprintf(out, "The longest time without a change in the last %s: %s, from %s on.\n", seconds(r.Quiet.Window),
			seconds(r.Quiet.Longest), ClockTime(r.Quiet.Since))
	}
	fmt.Fprintln(out, r.Sentence())
}

func seconds(s float64) string { return status.Period(time.Duration(s * float64(time.Second))) }
