package render

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/preflight"
	"github.com/tailrace-cdc/replicator/price"
)

// Checked writes what a check found, but for the problems: each server with its address and the
// principal of the calls, and for each table its rules with their class, what becomes of its
// attributes, and what a copy of it takes; then the permissions that all of it needs.
func Checked(out io.Writer, r *preflight.Report) error {
	for _, server := range slices.Sorted(maps.Keys(r.Principals)) {
		fmt.Fprintf(out, "%s: %s, as %s\n", server, r.Endpoints[server], r.Principals[server])
	}
	for i := range r.Selections {
		writeSelection(out, &r.Selections[i])
	}
	copies := false
	for like := range alike(r.Tables) {
		for _, t := range like {
			fmt.Fprintln(out, headingOf(t))
		}
		fmt.Fprint(out, rulesOf(like[0]))
		for _, t := range like {
			if len(like) > 1 && (t.Copy != nil || t.Idle != nil) {
				fmt.Fprintf(out, "  %s:\n", t.Source)
			}
			if t.Idle != nil {
				fmt.Fprintf(out, "  %s\n", idleSentence(t.Idle))
			}
			if t.Copy == nil {
				continue
			}
			copies = true
			if err := writeCopy(out, t.Copy); err != nil {
				return fmt.Errorf("write estimate: %w", err)
			}
		}
	}
	if err := writeRunning(out, r.Running); err != nil {
		return fmt.Errorf("write running cost: %w", err)
	}
	if copies {
		fmt.Fprintln(out, preflight.PriceNote())
	}
	if r.Policies != nil {
		writePolicies(out, r.Policies)
	}
	if usual, known := r.Cost[preflight.CostMemory]; known {
		fmt.Fprintf(out, "memory: run takes about %d MiB, up to %d MiB with items of hundreds of KB in every table, "+
			"and up to %d MiB more while it copies\n",
			usual>>20, r.Cost[preflight.CostMemoryLarge]>>20, r.Cost[preflight.CostMemoryCopy]>>20)
	}
	if len(r.Tables) > 0 {
		fmt.Fprintln(out)
	}
	return nil
}

// alike yields the tables in their order, and together those that one selection has chosen and of
// which there is the same to say.
func alike(tables []*preflight.TableReport) iter.Seq[[]*preflight.TableReport] {
	return func(yield func([]*preflight.TableReport) bool) {
		for i := 0; i < len(tables); {
			n := i + 1
			for ; n < len(tables) && tables[n].Entry == tables[i].Entry &&
				rulesOf(tables[n]) == rulesOf(tables[i]); n++ {
			}
			if !yield(tables[i:n]) {
				return
			}
			i = n
		}
	}
}

// headingOf returns where the changes of the table go.
func headingOf(t *preflight.TableReport) string {
	if t.Archived {
		return t.Source + " → the archive, and nothing else"
	}
	return t.Source + " → " + t.Target
}

// rulesOf returns the rules of a table, and what becomes of its attributes; nothing for a table
// that is only archived.
func rulesOf(t *preflight.TableReport) string {
	if t.Archived {
		return ""
	}
	out := &strings.Builder{}
	for i := range t.Rules {
		rule := &t.Rules[i]
		if rule.Row == "" {
			fmt.Fprintf(out, "  %s: %s\n", rule.Name, rule.Why)
			continue
		}
		fmt.Fprintf(out, "  %s: row %s, class %s: %s\n", rule.Name, rule.Row, Class(rule.Class), rule.Why)
		if back := WayBack(rule); back != "" {
			fmt.Fprintf(out, "    %s\n", back)
		}
	}
	if t.Sampled > 0 {
		fmt.Fprintf(out, "  %s sampled: %s\n", Count(t.Sampled, "item"), AttributeUses(t.Uses))
	}
	return out.String()
}

// writeSelection prints which tables an entry chooses, on one line.
func writeSelection(out io.Writer, s *preflight.Selection) {
	var by []string
	if s.Source != "" {
		by = append(by, s.Source)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Tag)) {
		by = append(by, key+"="+s.Tag[key])
	}
	tables := "no table yet"
	if len(s.Tables) > 0 {
		tables = strings.Join(s.Tables, ", ")
	}
	fmt.Fprintf(out, "%s %s: %s\n", s.Path, strings.Join(by, " "), tables)
}

// writeCopy writes the estimate of a copy, the two ways side by side.
func writeCopy(out io.Writer, e *preflight.CopyEstimate) error {
	recovery := ""
	if e.Recovery != "unknown" {
		recovery = ", point-in-time recovery " + e.Recovery
	}
	fmt.Fprintf(out, "  about %s, %s, %s%s; backfill: %s\n",
		Count(int(e.Items), "item"), humanize.IBytes(uint64(e.Bytes)), e.Billing, recovery, e.From)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "    COPY BY\tREAD UNITS\tDOLLARS\tTRANSFER\tHOURS\tREMARKS")
	for _, way := range e.Ways() {
		fmt.Fprintf(w, "    %s\t%s\t%s\t%s\t%s\t%s\n", way.Name, humanize.Comma(way.ReadUnits), way.DollarsText(),
			way.TransferText(), way.HoursText(), way.Note)
	}
	return w.Flush()
}

// idleSentence returns what reading a table costs while nothing changes, and what lag that adds.
func idleSentence(i *price.Idle) string {
	return fmt.Sprintf("%s, each read about every %gs while idle: %s reads a month, %s dollars; "+
		"a first change waits up to %gs",
		Count(i.Shards, "open shard"), i.Poll, humanize.Comma(int64(i.Reads)), preflight.DollarsText(i.Dollars), i.Poll)
}

// worthChanging is from how many dollars a month on a longer poll is worth naming.
const worthChanging = 5

// writeRunning writes what all tables cost while nothing changes, and what they take in Bigtable.
func writeRunning(out io.Writer, r *preflight.Running) error {
	if r == nil {
		return nil
	}
	if i := &r.Idle; i.Shards > 0 {
		fmt.Fprintf(out, "while nothing changes: reading the streams of all tables (%s) costs about %s dollars a month",
			Count(i.Shards, "open shard"), preflight.DollarsText(i.Dollars))
		if i.Dollars >= worthChanging && i.Poll < longPoll.Seconds() {
			fmt.Fprintf(out, "; `tables[].idle_poll: %s` about %s where that lag is no matter", longPoll, preflight.DollarsText(
				price.IdleOf(i.Shards, longPoll, 1/longPoll.Seconds()).Dollars))
		}
		fmt.Fprintf(out, ". Each account has %s reads a month free\n", humanize.Comma(int64(r.Prices.FreeStreamReads)))
	}
	return Storages(out, r.Bytes, r.Storages)
}

// longPoll is the poll that is compared with a short one.
const longPoll = 10 * time.Second

// writePolicies writes the policies so that each can be copied from the terminal.
func writePolicies(out io.Writer, p *preflight.Policies) {
	fmt.Fprintf(out, "AWS: the IAM policy that this configuration needs (docs/credentials.md)\n%s\n", p.AWS.Text())
	if len(p.Google) > 0 {
		fmt.Fprintln(out, "Google Cloud: the roles that it needs, on the instance")
	}
	for _, b := range p.Google {
		fmt.Fprintf(out, "# %s\n%s\n", b.For, b.Command)
	}
}
