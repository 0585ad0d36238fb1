package report

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// Sentence describes in one sentence what was found about a table, and in another one what was left
// out.
func (t *Table) Sentence() string {
	if len(t.Retired) == 0 || t.Sample > 0 || !t.Since.IsZero() && t.Full.IsZero() {
		return t.found()
	}
	return fmt.Sprintf("%s Cells that none of its items can have were left out: the replication of %s into %s has ended, "+
		"and they may be the application's.", t.found(), strings.Join(t.Retired, ", "), t.Target)
}

func (t *Table) found() string {
	if t.Sample > 0 {
		return t.sampleSentence()
	}
	pair := t.Source + " and " + t.Target
	switch t.Verdict {
	case Different:
		return fmt.Sprintf("%s differ: %s.", pair, t.differing())
	case Unproven:
		if t.Why != "" {
			return fmt.Sprintf("%s are not proven equal: %s. A full `replicator verify` shows what they are.", pair, t.Why)
		}
		return fmt.Sprintf("%s are not proven equal: nothing is known to differ, but %s could not be decided.", pair,
			english.Plural(int(t.Unproven), "item or cell", "items or cells"))
	}
	if !t.Since.IsZero() {
		return t.sinceSentence(pair)
	}
	return fmt.Sprintf("%s are equal: %s, %s, %s, each item as of a moment of its own since %s%s.", pair,
		english.Plural(int(t.Items), "item", ""), english.Plural(int(t.Rows), "row", ""),
		english.Plural(int(t.Cells), "cell", ""), t.Began.UTC().Format(second), t.lagging())
}

// differing counts what is not equal. What was not found is not named: not everything is looked for
// in each comparison.
func (t *Table) differing() string {
	var parts []string
	if t.Different > 0 {
		parts = append(parts, are(t.Different, "item")+" different")
	}
	if t.Refused > 0 {
		parts = append(parts, are(t.Refused, "item")+" refused by the mapping")
	}
	if t.Foreign > 0 {
		parts = append(parts, are(t.Foreign, "cell")+" foreign")
	}
	return strings.Join(parts, ", ")
}

// are returns a number of things with the verb: "1 item is", "2 items are", and without a noun "1
// is".
func are(n int64, noun string) string {
	if noun != "" {
		return english.Plural(int(n), noun+" is", noun+"s are")
	}
	return english.Plural(int(n), "is", "are")
}

// Sentence describes the evidence that Bigtable has every change.
func (p Proof) Sentence() string {
	if p == Proven {
		return "proven: heartbeats came out of every open shard after the comparison"
	}
	return "assumed: all was read and applied, as far as empty reads show"
}

func (t *Table) lagging() string {
	if t.Lagging {
		return ", as of reads that may lag"
	}
	return ""
}

const second = "2006-01-02 15:04:05 MST"

// sinceSentence describes what follows from the items that have changed since a time being equal.
func (t *Table) sinceSentence(pair string) string {
	since, what, is, was := t.Since.UTC().Format(second), humanize.Comma(t.Items)+" items that have", "are", "were"
	if t.Items == 1 {
		what, is, was = "one item that has", "is", "was"
	}
	if t.Items == 0 && t.Full.IsZero() {
		return fmt.Sprintf("%s: no item has changed since %s, so none was compared.", pair, since)
	}
	if t.Full.IsZero() {
		return fmt.Sprintf("%s: the %s changed since %s %s equal. The others were not compared.", pair, what, since, is)
	}
	if t.Items == 0 {
		return fmt.Sprintf("%s: no item has changed since %s, and all were equal then: with the full comparison of %s all "+
			"are, unless something else than the replicator has written to %s since.", pair, since,
			t.Full.UTC().Format(second), t.Target)
	}
	return fmt.Sprintf("%s: the %s changed since %s, or %s not equal then, %s equal; with the full comparison of %s all "+
		"are, unless something else than the replicator has written to %s since.", pair, what, since, was, is,
		t.Full.UTC().Format(second), t.Target)
}

// Worst returns the worst verdict of all tables.
func Worst(tables []Table) Verdict {
	worst := Equal
	for i := range tables {
		switch tables[i].Verdict {
		case Different:
			return Different
		case Unproven:
			worst = Unproven
		case Equal:
		}
	}
	return worst
}
