package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// Gap is a gap as gaps list prints it.
type Gap struct {
	Schema int               `json:"schema"`
	ID     string            `json:"id"`
	Table  string            `json:"table"`
	Stream string            `json:"stream"`
	Shard  string            `json:"shard"` // empty: between two streams
	Since  *time.Time        `json:"since"`
	Until  *time.Time        `json:"until"`
	Reason string            `json:"reason"`
	Found  *time.Time        `json:"found"`
	State  string            `json:"state"` // open: nothing after it is read; accepted, healing, healed
	Sinks  map[string]string `json:"sinks"` // differs, waived, healed, or healed and what is still missing
}

// GapOf returns a gap of a table as it is printed, but for the schema.
func GapOf(table string, s *checkpoint.State, g *checkpoint.Gap) Gap {
	x := Gap{
		ID: g.ID(), Table: table, Stream: g.Feed.Stream, Shard: g.Feed.Shard,
		Since: TimeOrNil(s.GapStart(g)), Until: TimeOrNil(g.Until), Reason: g.Reason, Found: TimeOrNil(g.Found),
		State: gapState(s, g), Sinks: map[string]string{},
	}
	for _, sink := range s.AffectedSinks(g) {
		x.Sinks[sink] = "differs"
		if _, waived := g.Waived[sink]; waived {
			x.Sinks[sink] = "waived"
		}
		if h, healed := g.Healed[sink]; healed {
			x.Sinks[sink] = strings.TrimSuffix("healed, "+h.Note, ", ")
		}
	}
	if _, healed := g.Healed[checkpoint.SinkBigtable]; healed && x.Sinks[sinkArchive] == "differs" {
		x.Sinks[sinkArchive] = "incomplete since " + GapTime(x.Since) + " until " + GapTime(x.Until)
	}
	return x
}

// sinkArchive is the name of the archive as a sink.
const sinkArchive = "archive"

// gapState returns the state of a gap in one word. What is settled stays accepted: the sinks say
// why nothing is missing.
func gapState(s *checkpoint.State, g *checkpoint.Gap) string {
	state := s.GapState(g)
	if state == checkpoint.GapSettled {
		state = checkpoint.GapAccepted
	}
	return string(state)
}

// Gaps writes gaps as a table.
func Gaps(out io.Writer, gaps []Gap) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTABLE\tSHARD\tSINCE\tUNTIL\tSTATE\tSINKS\tREASON")
	for _, g := range gaps {
		var sinks []string
		for sink, word := range g.Sinks {
			sinks = append(sinks, sink+" "+word)
		}
		slices.Sort(sinks)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.ID, g.Table, g.Shard, GapTime(g.Since), GapTime(g.Until),
			g.State, strings.Join(sinks, ", "), g.Reason)
	}
	return w.Flush()
}

// Lacking describes what is wrong in a sink because of a gap.
func Lacking(s *checkpoint.State, g *checkpoint.Gap, sink string) string {
	span := "between " + GapTime(TimeOrNil(s.GapStart(g))) + " and " + GapTime(TimeOrNil(g.Until))
	if sink == sinkArchive {
		return "items that expired " + span + " are not in the archive; " +
			"`gaps heal --sink archive --from-export` may bring them back"
	}
	return "items that changed " + span + " and not since are older than in DynamoDB, " +
		"items that were deleted then are still there"
}

// Accepted explains what accepted gaps mean for the table's rows; "" if no sink differs.
func Accepted(s *checkpoint.State) string {
	n := 0
	for i := range s.Gaps {
		if len(s.DifferingSinks(&s.Gaps[i])) > 0 {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(`Because of %s rows differ since %s: items that changed in a gap and not since are older than in
DynamoDB, and items that were deleted in a gap stay in Bigtable. Reading goes on; the table is not ready until
%s repairs that, or %s waives it for each sink.`,
		Count(n, "gap"), GapTime(TimeOrNil(s.DiffersSince())), "`replicator repair --gaps`", "`replicator gaps clear`")
}

// TimeOrNil returns a time of the service's clock, or nil for 0, which means unknown.
func TimeOrNil(ms change.Millis) *time.Time {
	if ms == 0 {
		return nil
	}
	t := ms.Time().UTC()
	return &t
}
