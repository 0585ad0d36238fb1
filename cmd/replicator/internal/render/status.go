package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tailrace-cdc/replicator/pipeline"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/verify/continuous"
)

// Status writes the status: what is in Bigtable, the verdict of the status page, why it is not
// ready, and a line per table. Scripts look for the sentence at the begin.
func Status(out io.Writer, s pipeline.Status) error {
	fmt.Fprintln(out, Sentence(s))
	fmt.Fprintln(out, s.Verdict.Line(time.Now()))
	for _, r := range errorsOnce(s.Verdict.Cause, s.Reasons) {
		fmt.Fprintf(out, "  not ready: %s\n", r)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TABLE\tSTATE\tREAD\tAPPLIED\tLATENCY P50, P99\tCHANGES/S\tWAITING\tLIMITED BY\tCALLS\t"+
		"SHARDS\tLOG\tDEAD\tGAPS\tOWNER")
	for _, t := range s.Tables {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n",
			shortName(t.Source), t.Word(), lagText(t.SourceLag), appliedText(&t), latencyText(t.Latency), rateText(t.Rate),
			pendingText(t.Pending), limitText(t.LimitedBy), callsText(t.Calls), shardsText(t), logSize(t.Queue),
			t.DeadLetters, max(t.Gaps, t.Differing), ownerText(t))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	if len(s.Services) == 0 { // else what helps is in the verdict: nothing limits but the service that fails
		printRemedies(out, s.Tables)
	}
	for i := range s.Tables {
		if f := s.Tables[i].Fence; f != nil {
			fmt.Fprintln(out, fenceText(&s.Tables[i]))
		}
		if r := s.Tables[i].Requests; r != nil {
			fmt.Fprintf(out, "%s: %s\n", s.Tables[i].Source, requestsText(r))
		}
		if v := s.Tables[i].Verify; v != nil {
			fmt.Fprintf(out, "%s: %s\n", s.Tables[i].Source, verifyText(v))
		}
		if a := s.Tables[i].Archive; a != nil {
			fmt.Fprintf(out, "%s: %s\n", s.Tables[i].Source, archiveText(a, s.Tables[i].Halts))
		}
	}
	return nil
}

// widestName is how many letters of a table's name a column shows: DynamoDB takes 255, and all
// other columns would be off the screen.
const widestName = 40

// shortName returns a name with its middle left out where it is too wide for a column.
func shortName(name string) string {
	if len(name) <= widestName { // names of tables are ASCII
		return name
	}
	return name[:widestName/2] + "…" + name[len(name)-widestName/2+1:]
}

// errorsOnce returns reasons without the text of an error that stands in the verdict or an earlier
// reason: one error of a service has many consequences.
func errorsOnce(verdict string, reasons []string) (shown []string) {
	const begin = "rpc error: code = "
	printed := []string{verdict}
	for _, r := range reasons {
		if i := strings.Index(r, begin); i >= 0 {
			text := strings.TrimRight(r[i:], ".")
			if slices.ContainsFunc(printed, func(p string) bool { return strings.Contains(p, text) }) {
				r = r[:i] + "the same error"
			}
		}
		printed, shown = append(printed, r), append(shown, r)
	}
	return shown
}

// appliedText returns how far the sinks are behind. Where all is applied that a fence lets through,
// that is the fence: changes behind it may be waiting.
func appliedText(t *pipeline.TableStatus) string {
	if t.Fence != nil && t.Fence.Reached && t.AppliedLag == 0 {
		return "fence"
	}
	return lagText(t.AppliedLag)
}

// fenceText returns since when a table is fenced, by which cutover, and what comes next.
func fenceText(t *pipeline.TableStatus) string {
	text := fmt.Sprintf("%s: fenced since %s for cutover %s; ", t.Source, ClockTime(t.Fence.Since), t.Fence.ID)
	if !t.Fence.Reached {
		text += "what was written before the fence is still being applied, and nothing behind it will be"
	} else {
		text += "Bigtable has everything up to the fence, and nothing behind it is written there"
	}
	if b := t.BehindFence; b != nil {
		text += ".\n  " + behindText(b)
	}
	if c := t.Fence.Certified; c != nil {
		return text + ".\n  certified at " + ClockTime(*c) + ": the application may write to Bigtable; once it " +
			"does, `replicator table retire` ends it;\n  before that `replicator cutover --undo` takes the fence away"
	}
	return text + ".\n  next: `replicator cutover` again goes on to the certificate; `--undo` takes the fence away;\n" +
		"  once the application writes to Bigtable, `replicator table retire` ends it"
}

// behindText returns what was written to DynamoDB behind a fence.
func behindText(b *status.BehindFence) string {
	text := fmt.Sprintf("WRITTEN BEHIND THE FENCE: %s in DynamoDB since %s that Bigtable does not get",
		Count(int(b.Changes), "change"), ClockTime(b.Since))
	if len(b.KeyHashes) > 0 {
		text += "; key hashes " + strings.Join(b.KeyHashes, ", ")
	}
	return text
}

// requestsText returns how far the requests of commands for single items are.
func requestsText(r *resync.RequestsStatus) string {
	text := fmt.Sprintf("%s for %s in work since %s", Count(r.Chunks, "request"), Count(r.Items, "item"),
		ClockTime(r.Since))
	if r.Why != "" {
		text += "; " + r.Why
	}
	return text
}

// verifyText returns what the continuous comparison has found, and how far it is.
func verifyText(v *continuous.Status) string {
	text := "the continuous comparison knows no difference"
	if v.Different+v.Foreign > 0 {
		text = fmt.Sprintf("DIFFERENT: %s, %s", Count(int(v.Different), "item"), Count(int(v.Foreign), "foreign cell"))
		if v.LastDifference != nil {
			text += ", last seen at " + ClockTime(*v.LastDifference)
		}
		text += "; the owner lists them in " + v.File + ", for `replicator repair --from`"
	}
	if n := v.Unproven + v.Refused; n > 0 {
		text += fmt.Sprintf("; %s not decided or refused", humanize.Comma(n))
	}
	text += fmt.Sprintf("\n  %.0f %% of the items and %.0f %% of the rows in this pass, %s finished", 100*v.Items.Share,
		100*v.Rows.Share, Count(int(v.Cycles), "cycle"))
	if v.CheckedSince != nil {
		text += "; all was compared at least once since " + ClockTime(*v.CheckedSince)
	}
	if v.Waits != "" {
		text += "; it waits: " + v.Waits
	}
	return text
}

// Sentence returns the status as one sentence: what is in Bigtable, what is lost or refused, how
// much retention is left.
func Sentence(s pipeline.Status) string {
	var low *time.Time
	known, gaps, letters, retention := len(s.Tables) > 0, 0, 0, -1.0
	for _, t := range s.Tables {
		gaps, letters = gaps+max(t.Gaps, t.Differing), letters+t.DeadLetters
		if t.Retention >= 0 && (retention < 0 || t.Retention < retention) {
			retention = t.Retention
		}
		switch {
		case t.AppliedThrough == nil:
			known = false
		case low == nil || t.AppliedThrough.Before(*low):
			low = t.AppliedThrough
		}
	}
	b := &strings.Builder{}
	if known && low != nil {
		fmt.Fprintf(b, "Everything written before %s is %s%s%s%s%s.", ClockTime(*low), placeOf(s),
			proofClause(s, *low), unfinishedClause(s), differsClause(s), lettersClause(letters))
	} else {
		b.WriteString("Not every table has been read and applied to its end yet.")
	}
	fmt.Fprintf(b, " %s, %s", Count(gaps, "gap"), Count(letters, "dead letter"))
	if retention >= 0 {
		fmt.Fprintf(b, ", %s of retention left", status.Period(time.Duration(retention*float64(time.Second))))
	}
	return b.String() + "."
}

// placeOf returns where everything is: tables without a target are only archived.
func placeOf(s pipeline.Status) string {
	replicated := func(t pipeline.TableStatus) bool { return t.Target != "" }
	if slices.ContainsFunc(s.Tables, replicated) {
		return "in Bigtable"
	}
	return "read, and what was deleted is kept for the archive"
}

// proofClause returns of which part heartbeats prove it, and of which it rests on empty reads. Rule
// 10: empty pages are not a proof of idleness. low is the time up to which everything is applied.
func proofClause(s pipeline.Status, low time.Time) string {
	proven := low
	for _, t := range s.Tables {
		if t.Proof != status.Proven || t.ProvenThrough == nil {
			return ", as far as empty reads show"
		}
		if t.ProvenThrough.Before(proven) {
			proven = *t.ProvenThrough
		}
	}
	if proven.Before(low) {
		return fmt.Sprintf(": before %s as heartbeats prove, since then as far as empty reads show",
			ClockTime(proven))
	}
	return ", as heartbeats prove"
}

// unfinishedClause returns which part of the tables has not been reached yet, whenever it was
// written: by copies, and by the comparisons after a recovery.
func unfinishedClause(s pipeline.Status) (clause string) {
	var copying, recovering bool
	left := int64(0)
	for _, t := range s.Tables {
		left += t.NotCopied
		copying = copying || t.Copy != nil || t.State == "copying"
		recovering = recovering || t.State == "recovering"
	}
	if copying {
		clause += ", except older items that are still to be copied"
	}
	if recovering {
		clause += ", except what the lost log held"
	}
	if left > 0 {
		clause += fmt.Sprintf(", except about %s that were not copied", Count(int(left), "older item"))
	}
	return clause
}

// differsClause returns since when changes are missing because of gaps; "" if none are.
func differsClause(s pipeline.Status) string {
	var since *time.Time
	n := 0
	for _, t := range s.Tables {
		n += t.Differing
		if t.DiffersSince != nil && (since == nil || t.DiffersSince.Before(*since)) {
			since = t.DiffersSince
		}
	}
	if since == nil {
		return ""
	}
	if since.Unix() <= 0 { // a copy that was cancelled: older items are missing
		return fmt.Sprintf(", except what is missing because of %s", Count(n, "gap"))
	}
	return fmt.Sprintf(", except what %s lost since %s", Count(n, "gap"), ClockTime(*since))
}

// lettersClause returns which changes are not in Bigtable because a sink has refused them: marks
// pass dead letters.
func lettersClause(letters int) string {
	if letters == 0 {
		return ""
	}
	return ", except what was refused"
}

// lagText returns a lag in seconds; a negative one is unknown.
func lagText(seconds float64) string {
	if seconds < 0 {
		return "unknown"
	}
	return status.Period(time.Duration(seconds*float64(time.Second))) + " ago"
}

// unknown stands in a column for what is not known.
const unknown = "–"

// latencyText returns how long changes took, half and 99 % of them.
func latencyText(l *status.Latency) string {
	if l == nil {
		return unknown
	}
	text := func(seconds float64) string { return status.Period(time.Duration(seconds * float64(time.Second))) }
	return text(l.P50) + ", " + text(l.P99)
}

// rateText returns a number of changes per second: whole ones from ten on.
func rateText(perSecond *float64) string {
	switch {
	case perSecond == nil:
		return unknown
	case *perSecond >= 10:
		return humanize.Comma(int64(*perSecond))
	}
	return humanize.FtoaWithDigits(*perSecond, 1)
}

// pendingText returns how many changes wait in the log.
func pendingText(n *uint64) string {
	if n == nil {
		return unknown
	}
	return humanize.Comma(int64(*n))
}

// limitText returns what limits a table.
func limitText(by limit.By) string { return cmp.Or(by.Word(), unknown) }

// callsText returns how many calls to Bigtable are in flight, and how many may be.
func callsText(c *limit.Calls) string {
	if c == nil {
		return unknown
	}
	return fmt.Sprintf("%s of %s", humanize.Comma(int64(c.InFlight)), humanize.Comma(int64(c.Bound)))
}

// printRemedies writes what helps the tables that something limits, a line for each remedy.
func printRemedies(out io.Writer, tables []pipeline.TableStatus) {
	var remedies []string
	sources, words := map[string][]string{}, map[string]string{}
	for i := range tables {
		t := &tables[i]
		remedy := t.LimitedBy.Remedy(t.Calls)
		if remedy == "" {
			continue
		}
		if words[remedy] == "" {
			remedies, words[remedy] = append(remedies, remedy), t.LimitedBy.Word()
		}
		sources[remedy] = append(sources[remedy], t.Source)
	}
	for _, remedy := range remedies {
		of := strings.Join(sources[remedy], ", ")
		if n := len(sources[remedy]); n > tablesInLine {
			of = Count(n, "table")
		}
		fmt.Fprintf(out, "The limit of %s: %s. What helps: %s.\n", of, words[remedy], remedy)
	}
}

// tablesInLine is how many tables are named in one line.
const tablesInLine = 5

// shardsText returns the number of shards by phase, without phases that have none.
func shardsText(t pipeline.TableStatus) string {
	parts := []string{fmt.Sprintf("%d open", t.Shards.Open)}
	for _, p := range []struct {
		n    int
		word string
	}{{t.Shards.Closed, "closed"}, {t.Shards.Waiting, "waiting"}, {t.Shards.Done, "done"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	return strings.Join(parts, ", ")
}

func logSize(q status.Queue) string {
	return humanize.IBytes(q.Bytes) + " of " + humanize.IBytes(q.Limit)
}

func ownerText(t pipeline.TableStatus) string {
	if t.Owner == "" {
		return "none"
	}
	return fmt.Sprintf("%s (epoch %d)", t.Owner, t.Epoch)
}
