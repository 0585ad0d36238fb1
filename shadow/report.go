package shadow

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/shadow/pattern"
	"github.com/tailrace-cdc/replicator/transform/access"
)

// reportSchema is the schema of reports that this version writes.
const reportSchema = 1

// Report is what a front has seen. It has no key and no value.
type Report struct {
	Schema  int       `json:"schema"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"`
	Passed  Passed    `json:"requests"`
	Counted int64     `json:"counted"` // by the engine

	Patterns []Line            `json:"patterns"` // the most frequent first
	Skipped  map[string]int64  `json:"skipped"`  // requests without a pattern, by reason
	Counts   *pattern.Snapshot `json:"counts"`   // from which several reports are merged

	unstored int64 // of Passed.Dropped: an engine may still count these while the run lasts
}

// Passed is what became of the requests that a front passed on: Total is the sum of the others.
type Passed struct {
	Total     int64 `json:"total"`
	Taken     int64 `json:"taken"`     // and counted by the engine
	Unsampled int64 `json:"unsampled"` // outside of the share
	Dropped   int64 `json:"dropped"`   // the engine was too slow or away, or died before it stored them
}

// Line is a pattern with its counts.
type Line struct {
	Text     string          `json:"text"`
	Pattern  pattern.Pattern `json:"pattern"`
	Requests int64           `json:"requests"`
	Share    float64         `json:"share"` // of the counted requests
	Keys     int64           `json:"keys"`
	Failed   int64           `json:"failed"` // their status was not 200
	Bytes    Spread          `json:"bytes"`  // of answers, as they were sent
	Micros   Spread          `json:"micros"` // from the head of the request to the end of the answer
	Verdict  *access.Verdict `json:"verdict,omitempty"`
	Replay   *Replayed       `json:"replay,omitempty"` // nil: the read was not to be replayed
}

// Replayed is what became of the reads of one pattern that were to be replayed in Bigtable.
type Replayed struct {
	Reads      int64            `json:"reads"`                // replayed
	Skipped    map[string]int64 `json:"skipped,omitempty"`    // by reason
	Settled    int64            `json:"settled"`              // items that differed at first, and were equal
	Undecided  int64            `json:"undecided"`            // items about which nothing was decided
	Mismatches map[string]int64 `json:"mismatches,omitempty"` // items, by what differs
	Micros     Spread           `json:"micros"`               // of the read in Bigtable
	Rows       Spread           `json:"rows"`
}

// Wrong returns how many items are mismatches.
func (r *Replayed) Wrong() (n int64) {
	for _, k := range r.Mismatches {
		n += k
	}
	return n
}

func replayedOf(r *pattern.Replay) *Replayed {
	if r == nil {
		return nil
	}
	out := &Replayed{
		Reads: r.Replayed, Settled: r.Equal, Undecided: r.Differed - r.Equal - r.Wrong(), Mismatches: r.Mismatches,
		Micros: spreadOf(&r.Micros), Rows: spreadOf(&r.Rows),
	}
	for why, n := range r.Skipped {
		if out.Skipped == nil {
			out.Skipped = map[string]int64{}
		}
		out.Skipped[string(why)] = n
	}
	return out
}

// Totals are the reads of a report that were to be replayed.
type Totals struct {
	Reads, Replayed, Settled, Undecided, Mismatches int64
	Bigtable, DynamoDB                              pattern.Histogram // microseconds of replayed reads
}

// Totals returns the sums of all patterns; ok is false if no read was to be replayed.
func (r *Report) Totals() (t Totals, ok bool) {
	for i := range r.Counts.Patterns {
		c := &r.Counts.Patterns[i]
		x := c.Replay
		if x == nil {
			continue
		}
		ok = true
		t.Reads += x.Replayed + x.Left()
		t.Replayed += x.Replayed
		t.Settled += x.Equal
		t.Mismatches += x.Wrong()
		t.Undecided += x.Differed - x.Equal - x.Wrong()
		if x.Replayed > 0 {
			t.Bigtable.Merge(&x.Micros)
			t.DynamoDB.Merge(&c.Micros)
		}
	}
	return t, ok
}

// Spread is a median with what only one of a hundred exceeds.
type Spread struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
}

// NewReport returns the report on counts. Reads of tables that the reader has a mapping of get
// their verdict.
func NewReport(r *pattern.Reader, s *pattern.Snapshot, passed Passed) *Report {
	out := newReport(s, passed)
	for i := range out.Patterns {
		out.Patterns[i].Verdict = r.Grade(out.Patterns[i].Pattern)
	}
	return out
}

func newReport(s *pattern.Snapshot, passed Passed) *Report {
	out := &Report{
		Schema: reportSchema, Passed: passed, Counted: s.Requests, Patterns: []Line{}, Skipped: map[string]int64{}, Counts: s,
	}
	for i := range s.Patterns {
		n := &s.Patterns[i]
		out.Patterns = append(out.Patterns, Line{
			Text: n.Pattern.Text(), Pattern: n.Pattern, Requests: n.Requests, Share: s.Share(i), Keys: n.Keys,
			Failed: n.Failed, Bytes: spreadOf(&n.Bytes), Micros: spreadOf(&n.Micros), Replay: replayedOf(n.Replay),
		})
	}
	for reason, n := range s.Skipped {
		out.Skipped[string(reason)] = n
	}
	return out
}

// ParseReport reads a report that was written as JSON.
func ParseReport(text []byte) (*Report, error) {
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil || r.Schema == 0 || r.Counts == nil {
		return nil, errors.New("no report of shadow")
	}
	if r.Schema > reportSchema { // Rule 11: a newer format is refused
		return nil, fmt.Errorf("a report with schema %d, and this version reads up to %d", r.Schema, reportSchema)
	}
	if err := r.Counts.Readable(); err != nil {
		return nil, fmt.Errorf("the counts of the report: %w", err)
	}
	p := r.Passed
	if r.Counted != r.Counts.Requests || p.Total != p.Taken+p.Unsampled+p.Dropped {
		return nil, errors.New("a report whose counts do not add up: it is damaged")
	}
	return r, nil
}

// ReadReports reads the reports of several fronts. The same one twice would count twice: two
// fronts never see the same to the microsecond.
func ReadReports(files []string) (all []*Report, err error) {
	const hint = "what `replicator shadow --json` has printed"
	read := map[string]string{} // the file of each text
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, failure.With(failure.Usage, hint, err)
		}
		r, err := ParseReport(text)
		if err != nil {
			return nil, failure.Usagef(hint, "read %s: %w", file, err)
		}
		if before, twice := read[string(text)]; twice && r.Passed.Total > 0 {
			return nil, failure.Usagef("each report once", "%s and %s are the same report", before, file)
		}
		read[string(text)] = file
		all = append(all, r)
	}
	return all, nil
}

// Merge returns the report on what several fronts have seen. A read has the first verdict that one
// of them has.
func Merge(reports []*Report) *Report {
	counts, passed := pattern.NewCollector().Snapshot(), Passed{}
	verdicts := map[string]*access.Verdict{} // by the ID of the pattern
	for _, r := range reports {
		counts.Merge(r.Counts)
		passed.Total, passed.Taken = passed.Total+r.Passed.Total, passed.Taken+r.Passed.Taken
		passed.Unsampled, passed.Dropped = passed.Unsampled+r.Passed.Unsampled, passed.Dropped+r.Passed.Dropped
		for i := range r.Patterns {
			l := &r.Patterns[i]
			if id := l.Pattern.ID(); verdicts[id] == nil {
				verdicts[id] = l.Verdict
			}
		}
	}
	out := newReport(counts, passed)
	for i, r := range reports {
		if i == 0 || r.Began.Before(out.Began) {
			out.Began = r.Began
		}
		if r.Ended.After(out.Ended) {
			out.Ended = r.Ended
		}
	}
	for i := range out.Patterns {
		out.Patterns[i].Verdict = verdicts[out.Patterns[i].Pattern.ID()]
	}
	return out
}

// OnlyTables leaves out the patterns of all other tables, also where the report is merged; without
// tables nothing is left out.
func (r *Report) OnlyTables(tables []string) {
	if len(tables) == 0 {
		return
	}
	other := func(p *pattern.Pattern) bool { return !slices.Contains(tables, p.Table) }
	r.Patterns = slices.DeleteFunc(r.Patterns, func(l Line) bool { return other(&l.Pattern) })
	r.Counts.Patterns = slices.DeleteFunc(r.Counts.Patterns, func(c pattern.Count) bool { return other(&c.Pattern) })
}

func spreadOf(h *pattern.Histogram) Spread { return Spread{h.Quantile(0.5), h.Quantile(0.99)} }

// grades are the grades in the order in which the sentence counts them.
var grades = []access.Grade{access.Served, access.OrderDiffers, access.WiderRange, access.NoRead}

// Sentences returns the report in words: what was counted, how the reads are served, and what was
// replayed.
func (r *Report) Sentences() []string {
	passed := english.Plural(int(r.Passed.Total), "request", "")
	if r.Counted == 0 {
		return []string{passed + " passed, and none was counted."}
	}
	reads, writes := 0, 0
	graded, missing := map[access.Grade]int{}, 0.0
	for i := range r.Patterns {
		switch l := &r.Patterns[i]; {
		case l.Pattern.Kind == pattern.Write:
			writes++
		case l.Verdict != nil:
			graded[l.Verdict.Grade]++
			if l.Verdict.Grade == access.NoRead {
				missing += l.Share
			}
			reads++
		default:
			reads++
		}
	}
	all := []string{fmt.Sprintf("%s passed, %d counted: %s and %s.", passed, r.Counted,
		english.Plural(reads, "pattern of reads", "patterns of reads"),
		english.Plural(writes, "form of writes", "forms of writes"))}
	var parts []string
	for _, g := range grades {
		if graded[g] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", graded[g], g))
		}
	}
	if len(parts) > 0 {
		text := "Patterns of reads by grade: " + strings.Join(parts, ", ") + "."
		if missing > 0 {
			text += fmt.Sprintf(" %.1f %% of the requests have no read in Bigtable yet.", 100*missing)
		}
		all = append(all, text)
	}
	if t, ok := r.Totals(); ok {
		all = append(all, t.sentence())
	}
	return all
}

// sentence returns what became of the reads in words.
func (t *Totals) sentence() string {
	text := fmt.Sprintf("%d of %s replayed: %s, %s settled, %d undecided.", t.Replayed,
		english.Plural(int(t.Reads), "read", ""), english.Plural(int(t.Mismatches), "mismatch", "mismatches"),
		english.Plural(int(t.Settled), "item", ""), t.Undecided)
	if t.Replayed > 0 {
		text += fmt.Sprintf(" p99 %s on Bigtable, %s on DynamoDB, from this host.",
			millis(t.Bigtable.Quantile(0.99)), millis(t.DynamoDB.Quantile(0.99)))
	}
	return text
}

// Sentence returns the report in one line of words.
func (r *Report) Sentence() string { return strings.Join(r.Sentences(), " ") }
