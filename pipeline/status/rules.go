package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
	"github.com/tailrace-cdc/replicator/source"
)

// rules judge one table after the other, in the order of precedence. Services and notes are about
// no table: the rules about them find the same with each.
var rules = []func(*Outlook, *Table) *finding{
	judgeGap, judgeFull, judgeHalt, judgeServices, judgeRetention, judgeOwner, judgeStart, judgeSinkHalt, judgePause,
	judgeHealing, judgeBehindFence, judgeDifferences, judgeLetters, judgeUnread, judgeGone, judgeStreamOff, judgeLate,
	judgeCopy, judgeRest, judgeNotes, judgeThrottle, judgeThrottledCalls, judgeFence,
}

func judgeGap(_ *Outlook, t *Table) *finding {
	if t.Gaps == 0 {
		return nil
	}
	return &finding{
		state: StateGap, since: t.Since, weight: float64(t.Gaps),
		cause: fmt.Sprintf("changes of %s were lost before they were read (%s); nothing is read behind %s",
			t.Source, plural(t.Gaps, "gap"), oneOf(t.Gaps, "it", "them")),
		next: "`replicator gaps list --table " + t.Source + "`, then `replicator repair --gaps --table " + t.Source + "`",
	}
}

func judgeFull(o *Outlook, t *Table) *finding {
	if t.PauseReason == "" {
		return nil
	}
	cause := "reading of " + t.Source + " pauses: " + t.PauseReason
	next := "`replicator status --table " + t.Source + "` says which sink is behind; or raise `queue.max_bytes`"
	for _, s := range o.Failing {
		if s.Name == Bigtable {
			cause += ", because Bigtable is away"
			next = "bring Bigtable back (`replicator check`), or raise `queue.max_bytes` and restart"
		}
	}
	if t.Retention >= 0 {
		cause += "; unread changes are lost in " + hours(t.Retention)
	}
	return &finding{state: StateFull, cause: cause, next: next, weight: t.urgency()}
}

func judgeHalt(o *Outlook, t *Table) *finding {
	if !t.halted() || t.vanished() && t.Code == outcome.CodeSourceGone {
		return nil
	}
	halted := t.Source + " is halted: "
	next := nextOfHalt(t.Code, "mend the cause, then `replicator resume --table "+t.Source+"`")
	if t.HeldEntry != 0 {
		next = fmt.Sprintf("`replicator queue dump --table %s --kind change --from %d --limit 10 --show-data` begins with "+
			"what was refused; mend the cause, then `replicator resume --table %s`", t.Source, t.HeldEntry, t.Source)
	}
	if n := o.haltedAs(t); n > 1 {
		halted = plural(n, "table") + " are halted, " + t.Source + " because: "
		next = nextOfHalt(t.Code, "mend the cause: each table is tried again every minute")
	}
	return &finding{state: StateHalted, cause: halted + t.Halt, next: next, since: t.Since}
}

// nextOfHalt returns what ends a halt with a code; otherwise for all others.
func nextOfHalt(code, otherwise string) string {
	switch code {
	case outcome.CodeMissing:
		return "`replicator schema --apply`; the table goes on by itself within a minute; what was deleted has taken its " +
			"cells along, and `replicator verify` names them"
	case outcome.CodePremise:
		return "the command that the cause names; writing goes on by itself within two minutes"
	case outcome.CodeLogUnread:
		return "bring the volume of the queue back; the table goes on by itself within a minute"
	case outcome.CodeMapping:
		return "`replicator mapping diff` says what the change does; the file is read again within a minute, once the " +
			"mapping is put back or accepted"
	case outcome.CodeRefused, outcome.CodeRowMissing: // no try passes what is stored
		return "as the cause says; `replicator check` shows whether anything is left to do"
	}
	return otherwise
}

// haltedAs returns how many tables are halted with the code of a table's halt.
func (o *Outlook) haltedAs(t *Table) (n int) {
	for i := range o.Tables {
		if other := &o.Tables[i]; other.Code == t.Code && other.halted() {
			n++
		}
	}
	return n
}

// judgeSinkHalt finds a sink that is halted beside a table that goes on.
func judgeSinkHalt(_ *Outlook, t *Table) *finding {
	if len(t.Halts) == 0 || t.halted() {
		return nil
	}
	return &finding{
		state: StateSinkHalted, since: t.HaltSince,
		cause: fmt.Sprintf("the archive of %s is halted (%s) and tried again every minute, while Bigtable goes on; the log "+
			"keeps what is to be archived: %s", t.Source, t.HaltSink, t.Halt),
		next: nextOfHalt(t.Code, "mend the cause; `replicator resume --table "+t.Source+"` tries at once"),
	}
}

// judgeThrottle finds a table that is read slower than it could be, and is not late because of it.
func judgeThrottle(o *Outlook, t *Table) *finding {
	if t.ThrottledSince == nil {
		return nil
	}
	others := 0 // a table that goes on is no further reason, so the verdict does not count it
	for i := range o.Tables {
		if other := &o.Tables[i]; other.Source != t.Source && other.ThrottledSince != nil {
			others++
		}
	}
	cause := "DynamoDB throttles the reading of " + t.Source + ", which goes on slower"
	if others > 0 {
		cause = fmt.Sprintf("DynamoDB throttles the reading of %s and of %s, which go on slower", t.Source,
			plural(others, "further table"))
	}
	return &finding{state: StateThrottled, since: t.ThrottledSince, cause: cause, next: nextOfThrottle}
}

const nextOfThrottle = "look for other readers of the stream: DynamoDB allows two per shard; " +
	"`replicator status --watch`"

func judgeServices(o *Outlook, _ *Table) *finding {
	var worst Service
	for _, s := range o.Failing {
		switch {
		case s.Throttled: // judgeThrottle says more
		case worst.Name == "", s.Name == NATS, s.Since.Before(worst.Since) && worst.Name != NATS:
			worst = s // without the log nothing else can go on
		}
	}
	if worst.Name == "" {
		return nil
	}
	cause := map[string]string{
		NATS:     "nothing is read or applied until it is back, and DynamoDB keeps changes for 24 hours",
		Bigtable: "the log keeps what is read until it is back, and nothing is lost",
		DynamoDB: "nothing new is read, and DynamoDB keeps changes for 24 hours",
	}[worst.Name]
	return &finding{
		state: worst.away(), since: &worst.Since,
		cause: worst.Name + " does not answer or refuses every call (" + worst.Error + "): " + cause,
		next:  "`replicator check` tests the connection and the permissions",
	}
}

func judgeRetention(_ *Outlook, t *Table) *finding {
	if t.Retention < 0 || t.Retention >= lowRetention.Seconds() {
		return nil
	}
	cause, next := "", "`replicator status --table "+t.Source+"` says what holds reading up"
	if t.ThrottledSince != nil {
		cause, next = ": DynamoDB throttles the reading", nextOfThrottle
	}
	return &finding{
		state: StateRetention, weight: t.urgency(), next: next,
		cause: "unread changes of " + t.Source + " are lost in " + hours(t.Retention) + cause,
	}
}

func judgeOwner(_ *Outlook, t *Table) *finding {
	if t.vanished() {
		return nil
	}
	if r := t.reason(WhyNoOwner); r != nil {
		return &finding{
			state: StateNoOwner, cause: t.Source + ": " + strings.TrimPrefix(r.Text, ownerless), weight: t.urgency(),
			next: "is a `replicator run` running, and what does its log say? `replicator check` tests what it needs",
		}
	}
	return nil
}

func judgeStart(_ *Outlook, t *Table) *finding {
	if t.vanished() {
		return nil
	}
	if r := t.reason(WhyNotStarted, WhyNotAllRead, WhyNoLog); r != nil {
		return &finding{
			state: StateStarting, cause: t.Source + ": " + r.Text, next: "wait; `replicator check` if it lasts for minutes",
		}
	}
	return nil
}

func judgePause(_ *Outlook, t *Table) *finding {
	if t.State != "paused" {
		return nil
	}
	return &finding{
		state: StatePaused, since: t.Since, weight: t.urgency(),
		cause: t.Source + " is paused by " + cmp.Or(t.PausedBy, "an operator") + "; DynamoDB keeps changes for 24 hours",
		next:  "`replicator resume --table " + t.Source + "`",
	}
}

func judgeHealing(_ *Outlook, t *Table) *finding {
	if t.ResyncSince == nil {
		return nil
	}
	return &finding{
		state: StateHealing, since: t.ResyncSince,
		cause: "the whole table " + t.Source + " is compared with Bigtable, and what differs is repaired",
		next:  "wait; `replicator status --watch` shows the progress",
	}
}

func judgeDifferences(_ *Outlook, t *Table) *finding {
	switch {
	case t.Has(WhyUnconfirmed) && !t.Has(WhyDiffers) && !t.Has(WhyCopyCanceled):
		return &finding{
			state: StateDoubt, since: t.Since, cause: t.Source + " was " + checkpoint.ReasonUnconfirmed,
			next: "`replicator verify --table " + t.Source + "` ends this when it finds everything equal",
		}
	case t.Differing > 0 && t.OnlyArchiveDiffers:
		return &finding{
			state: StateDiffers, since: t.DiffersSince, weight: float64(t.Differing),
			cause: "the archive of " + t.Source + " lacks what " + plural(t.Differing, "gap") + " lost; Bigtable has it",
			next: "`replicator gaps heal --sink archive --from-export …`, or `replicator gaps clear --sink archive`, for each " +
				"of `replicator gaps list --table " + t.Source + "`",
		}
	case t.Differing > 0:
		return &finding{
			state: StateDiffers, since: t.Since, weight: float64(t.Differing),
			cause: t.Source + " lacks what " + plural(t.Differing, "gap") + " lost",
			next:  "`replicator repair --gaps --table " + t.Source + "`",
		}
	case t.Verify != nil && t.Verify.Different+t.Verify.Foreign > 0:
		return &finding{
			state: StateDiffers, weight: float64(t.Verify.Different + t.Verify.Foreign),
			cause: fmt.Sprintf("the continuous comparison of %s has found %s that %s, and %s", t.Source,
				plural(int(t.Verify.Different), "item"), oneOf(int(t.Verify.Different), "differs", "differ"),
				plural(int(t.Verify.Foreign), "foreign cell")),
			next: "`replicator repair --from " + t.Verify.File + "`",
		}
	}
	return nil
}

func judgeLetters(_ *Outlook, t *Table) *finding {
	if t.DeadLetters == 0 {
		return nil
	}
	return &finding{
		state: StateLetters, since: t.LettersSince, weight: float64(t.DeadLetters),
		cause: fmt.Sprintf("%s of %s %s; the rest goes on", plural(t.DeadLetters, "change"), t.Source,
			oneOf(t.DeadLetters, "was refused for good and waits as a dead letter",
				"were refused for good and wait as dead letters")),
		next: "`replicator dlq list --table " + t.Source + "`",
	}
}

// judgeStreamOff finds a table whose stream was disabled while DynamoDB still has the table.
func judgeStreamOff(_ *Outlook, t *Table) *finding {
	r := t.reason(WhyStreamOff)
	if r == nil {
		return nil
	}
	return &finding{
		state: StateStreamOff, cause: t.Source + ": " + r.Text,
		next: "`aws dynamodb update-table --table-name " + t.Source + " --stream-specification " +
			"StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES`: reading goes on by itself, and a gap is recorded for what " +
			"was written meanwhile; was the table deleted, `replicator status` shows that within a minute",
	}
}

func judgeLate(_ *Outlook, t *Table) *finding {
	for _, code := range []ReasonCode{WhyLateApplied, WhyLateRead} {
		if r := t.reason(code); r != nil {
			if f := judgeThrottle(&Outlook{}, t); f != nil && code == WhyLateRead {
				f.cause += ": " + r.Text
				return f
			}
			return &finding{
				state: StateLate, cause: t.Source + ": " + r.Text, weight: max(t.SourceLag, t.AppliedLag),
				next: "`replicator status --watch`; `replicator check` tests what it depends on",
			}
		}
	}
	return nil
}

func judgeCopy(_ *Outlook, t *Table) *finding {
	switch {
	case t.Copy != nil:
		next := "wait; `replicator copy pause --table " + t.Source + "` holds it"
		if t.Copy.Paused != "" {
			next = "`replicator copy resume --table " + t.Source + "`"
		}
		return &finding{
			state: StateCopying, since: t.Since, next: next,
			cause: "older items of " + t.Source + " are copied beside the stream: " + t.Copy.Sentence(),
		}
	case t.State == "copying":
		return &finding{state: StateCopying, cause: "the copy of " + t.Source + " begins", next: "wait", since: t.Since}
	}
	return nil
}

func judgeRest(_ *Outlook, t *Table) *finding {
	if len(t.Why) == 0 {
		return nil
	}
	next := "`replicator check` tests what the table depends on"
	switch t.Why[0].Code {
	case WhyPremise:
		next = nextOfHalt(outcome.CodePremise, "")
	case WhyCopyDue, WhyOpenUnread:
		next = "wait; `replicator check` if it lasts for minutes"
	case WhyNotStored:
		next = "the log of `replicator run` says why; `replicator check` tests NATS, and the room for the log"
	}
	return &finding{state: StateNotReady, cause: t.Source + ": " + t.Why[0].Text, next: next}
}

// hours returns a time left in words.
func hours(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
}

// urgency is greater, the less time is left until unread changes may be lost.
func (t *Table) urgency() float64 {
	if t.Retention < 0 {
		return -source.Retention.Seconds()
	}
	return -t.Retention
}

// away returns the state of a verdict about the service.
func (s *Service) away() string { return s.Name + " " + StateAway }
