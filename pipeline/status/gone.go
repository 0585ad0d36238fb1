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

// hasVanished is the text of WhyVanished for a table of the file.
const hasVanished = "vanished: DynamoDB has no table of this name any more"

// Vanish notes that DynamoDB has no table of this name any more. That its stream is disabled
// follows from it.
func (t *Table) Vanish() {
	t.Explain(slices.DeleteFunc(slices.Clone(t.Why), func(r Reason) bool { return r.Code == WhyStreamOff })...)
	if !t.vanished() {
		t.Put(Reason{WhyVanished, hasVanished})
	}
}

// judgeUnread finds a vanished table that may lack changes: no process read its stream meanwhile.
func judgeUnread(_ *Outlook, t *Table) *finding {
	if !t.vanished() || t.Ended || t.Code != outcome.CodeSourceGone || t.State != "halted" {
		return nil
	}
	return &finding{
		state: StateDeleted, since: t.Since,
		cause: t.Source + " has vanished, and the last changes in its stream were perhaps not read: a " +
			"process that starts after the deletion does not know the stream's table",
		next: stepDeletedUnread.of(t),
	}
}

// judgeGone finds a table that no selection chooses any more, and how to end what is kept of it.
func judgeGone(_ *Outlook, t *Table) *finding {
	switch {
	case t.vanished():
		next := stepDeletedRetire
		switch {
		case !t.Ended:
			next = stepDeletedRead
		case t.State != "halted": // its entry in the configuration names it
			next = stepDeletedApplied
		}
		return &finding{
			state: StateDeleted, cause: t.Source + " has vanished: DynamoDB has no table of this name", next: next.of(t),
		}
	case t.Has(WhyUntagged):
		return &finding{
			state: StateGone,
			cause: t.Source + " is no longer chosen: its tags match no selection; it is replicated until except names it",
			next:  stepNotChosen.of(t),
		}
	}
	return nil
}

// judgeNotes finds what no table shows: DynamoDB cannot be listed, or a table cannot be replicated.
func judgeNotes(o *Outlook, t *Table) *finding {
	if len(o.Notes) == 0 || t != &o.Tables[0] { // once
		return nil
	}
	return &finding{state: StateNotReady, cause: o.Notes[0], next: stepNote.of(t)}
}

// judgeThrottledCalls finds that calls other than reads are throttled.
func judgeThrottledCalls(o *Outlook, t *Table) *finding {
	for i := range o.Failing {
		if s := &o.Failing[i]; s.Throttled && t == &o.Tables[0] {
			return &finding{
				state: StateThrottled, since: &s.Since,
				cause: s.Name + " throttles calls (" + s.Error + "), which are tried again",
				next:  stepThrottledCalls.of(t),
			}
		}
	}
	return nil
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
	return &finding{
		state: StateElsewhere, cause: cause, next: stepElsewhere.of(&tables[0]),
	}
}

// judgeHealth finds that all is well, and names items that were left out on purpose.
func judgeHealth(tables []Table) *finding {
	f := &finding{state: StateHealthy, cause: health(tables), next: steps[stepNothing]}
	for i := range tables {
		if t := &tables[i]; t.NotCopied > 0 {
			f.cause += fmt.Sprintf("; about %s of %s were not copied", plural(int(t.NotCopied), "older item"), t.Source)
			f.next = stepNotCopied.of(t)
			break
		}
	}
	return f
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
