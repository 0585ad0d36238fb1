package report

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// Sentence says in one sentence what was found about a table, and in another one what was left out.
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
		return fmt.Sprintf("%s differ: %s items are different, %s are refused by the mapping, %s cells are foreign.",
			pair, humanize.Comma(t.Different), humanize.Comma(t.Refused), humanize.Comma(t.Foreign))
	case Unproven:
		if t.Why != "" {
			return fmt.Sprintf("%s are not proven equal: %s. A full `replicator verify` shows what they are.", pair, t.Why)
		}
		return fmt.Sprintf("%s are not proven equal: nothing is known to differ, but %s items or cells could not be decided.",
			pair, humanize.Comma(t.Unproven))
	}
	if !t.Since.IsZero() {
		return t.sinceSentence(pair)
	}
	return fmt.Sprintf("%s are equal: %s items, %s rows, %s cells, each item as of a moment of its own since %s%s.",
		pair, humanize.Comma(t.Items), humanize.Comma(t.Rows), humanize.Comma(t.Cells),
		t.Began.UTC().Format(second), t.lagging())
}

func (t *Table) lagging() string {
	if t.Lagging {
		return ", as of reads that may lag"
	}
	return ""
}

const second = "2006-01-02 15:04:05 MST"

// sinceSentence says what it means that the items that have changed since a time are equal.
func (t *Table) sinceSentence(pair string) string {
	n := humanize.Comma(t.Items)
	if t.Full.IsZero() {
		return fmt.Sprintf("%s: the %s items that have changed since %s are equal. The others were not compared.", pair, n,
			t.Since.UTC().Format(second))
	}
	return fmt.Sprintf("%s: the %s items that have changed since %s, or were not equal then, are equal; with the full "+
		"comparison of %s all are, unless something else than the replicator has written to %s since.", pair, n,
		t.Since.UTC().Format(second), t.Full.UTC().Format(second), t.Target)
}

// Worst returns the verdict of all tables together: that of the worst.
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
