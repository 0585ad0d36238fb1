package status

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// vanished reports whether the table is gone from DynamoDB: that it has no owner is no other
// trouble.
func (t *Table) vanished() bool { return t.Has(WhyVanished) }

// judgeUnread finds a vanished table that may lack changes: no process read its stream meanwhile.
func judgeUnread(_ *Outlook, t *Table) *finding {
	if !t.vanished() || t.Ended || t.Code != outcome.CodeSourceGone || t.State != "halted" {
		return nil
	}
	return &finding{StateGone, t.Source + " has vanished, and the last changes in its stream were perhaps not read: a " +
		"process that starts after the deletion does not know the stream's table", "what Bigtable has is the table as of " +
		"`applied_through` in `replicator status --json`; when that is noted, " + retireCommand(t), nil}
}

func retireCommand(t *Table) string { return "`replicator table retire --table " + t.Source + "`" }

// judgeGone finds a table that no selection chooses any more, and how to end what is kept of it.
func judgeGone(_ *Outlook, t *Table) *finding {
	retire := retireCommand(t)
	switch {
	case t.vanished():
		next := retire
		if !t.Ended { // what is left in its stream is still read
			next = "wait until `replicator status` shows it halted: its stream is read to its end then; then " + retire
		}
		return &finding{StateGone, t.Source + " has vanished: DynamoDB has no table of this name", next, nil}
	case t.Has(WhyUntagged):
		return &finding{StateGone, t.Source + " is no longer chosen: its tags match no selection; it is replicated until " +
			"except names it", "give it its tags back; or write it under `except`, restart, and then " + retire, nil}
	}
	return nil
}

// judgeNotes finds what no table shows: DynamoDB cannot be listed, a table cannot be replicated, or
// calls other than reads are throttled.
func judgeNotes(o *Outlook) *finding {
	for i := range o.Failing {
		if s := &o.Failing[i]; s.Throttled {
			return &finding{StateThrottled, s.Name + " throttles calls (" + s.Error + "), which are tried again",
				"`replicator status --watch`; look for other callers of the account", &s.Since}
		}
	}
	if len(o.Notes) == 0 {
		return nil
	}
	return &finding{StateNotReady, o.Notes[0], "`replicator check`", nil}
}

// judgeElsewhere finds tables that other replicas carry: this replica detects that their logs grow,
// and no gap, halt or dead letter of theirs.
func judgeElsewhere(tables []Table) *finding {
	var owners, own = []string{}, []Table{}
	for i := range tables {
		if tables[i].State == StandBy {
			owners = append(owners, tables[i].Owner)
		} else {
			own = append(own, tables[i])
		}
	}
	if len(owners) == 0 {
		return nil
	}
	n := len(owners)
	slices.Sort(owners)
	cause := plural(n, "table") + " " + oneOf(n, "is", "are") + " carried by " +
		strings.Join(slices.Compact(owners), ", ") + ", and how " + oneOf(n, "it is", "they are") + " is not known here"
	if len(own) > 0 {
		cause += "; here " + health(own)
	}
	return &finding{StateElsewhere, cause, "`replicator status` tells it of all tables, as their owner's page does", nil}
}

// health returns a text, with numbers, for when all is well.
func health(tables []Table) string {
	waiting, slowest := uint64(0), -1.0
	for i := range tables {
		if l := tables[i].Latency; l != nil {
			slowest = max(slowest, l.P99)
		}
		if p := tables[i].Pending; p != nil {
			waiting += *p
		}
	}
	text := plural(len(tables), "table") + " " + oneOf(len(tables), "is", "are") + " replicated"
	if slowest >= 0 {
		text += fmt.Sprintf(", 99 %% of the changes within %.1f s", slowest)
	}
	return text + fmt.Sprintf(", %s", oneOf(int(min(waiting, 1)), "some changes are on their way", "nothing waits"))
}
