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
		next: stepGap.of(t),
	}
}

func judgeFull(o *Outlook, t *Table) *finding {
	if t.PauseReason == "" {
		return nil
	}
	cause := "reading of " + t.Source + " pauses: " + t.PauseReason
	next := stepFull
	for _, s := range o.Failing {
		if s.Name == Bigtable {
			cause += ", because Bigtable is away"
			next = stepFullAway
		}
	}
	if t.Retention >= 0 {
		cause += "; unread changes are lost " + within(t.Retention)
	}
	return &finding{state: StateFull, cause: cause, next: next.of(t), weight: t.urgency()}
}

func judgeHalt(o *Outlook, t *Table) *finding {
	if !t.halted() || t.vanished() && t.Code == outcome.CodeSourceGone {
		return nil
	}
	halted := t.Source + " is halted: "
	next := stepOfHalt(t.Code, stepHalt)
	switch {
	case t.HeldEntry != 0:
		next = stepHaltHeld
	case next == stepHalt && t.LogFormat == 0: // it has no log yet, so no command can resume it
		next = stepHaltMany
	}
	if n := o.haltedAs(t); n > 1 {
		halted = plural(n, "table") + " are halted, " + t.Source + " because: "
		next = stepOfHalt(t.Code, stepHaltMany)
	}
	return &finding{state: StateHalted, cause: halted + t.Halt, next: next.of(t), since: t.Since}
}

// stepOfHalt returns what ends a halt with a code; otherwise for all others.
func stepOfHalt(code string, otherwise step) step {
	switch code {
	case outcome.CodeMissing:
		return stepHaltMissing
	case outcome.CodePremise:
		return stepHaltPremise
	case outcome.CodeLogUnread:
		return stepHaltUnread
	case outcome.CodeMapping:
		return stepHaltMapping
	case outcome.CodeLogLost, outcome.CodeLogOlder:
		return stepHaltLost
	case outcome.CodeRefused, outcome.CodeRowMissing: // no try passes what is stored
		return stepHaltRefused
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
		next: stepOfHalt(t.Code, stepSinkHalted).of(t),
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
	return &finding{state: StateThrottled, since: t.ThrottledSince, cause: cause, next: stepThrottled.of(t)}
}

func judgeServices(o *Outlook, t *Table) *finding {
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
	found := &finding{state: worst.away(), since: &worst.Since, next: stepAway.of(t)}
	if !worst.Refuses {
		found.cause = worst.Name + " does not answer or refuses every call (" + worst.Error + "): " + cause
		return found
	}
	found.cause = fmt.Sprintf("%s does not accept the credentials, or they lack a permission (%s): %s", worst.Name,
		worst.Error, cause)
	if worst.Hint != "" {
		found.next = strings.ReplaceAll(stepRefused.of(t), "{hint}", worst.Hint)
	}
	return found
}

func judgeRetention(_ *Outlook, t *Table) *finding {
	if t.Retention < 0 || t.Retention >= lowRetention.Seconds() {
		return nil
	}
	cause, next := "", stepRetention
	if t.ThrottledSince != nil {
		cause, next = ": DynamoDB throttles the reading", stepThrottled
	}
	return &finding{
		state: StateRetention, weight: t.urgency(), next: next.of(t),
		cause: "unread changes of " + t.Source + " are lost " + within(t.Retention) + cause,
	}
}

func judgeOwner(_ *Outlook, t *Table) *finding {
	if t.vanished() {
		return nil
	}
	if r := t.reason(WhyNoOwner); r != nil {
		return &finding{
			state: StateNoOwner, cause: t.Source + ": " + strings.TrimPrefix(r.Text, ownerless), weight: t.urgency(),
			next: stepNoOwner.of(t),
		}
	}
	return nil
}

func judgeStart(_ *Outlook, t *Table) *finding {
	if t.vanished() {
		return nil
	}
	if r := t.reason(WhyNotStarted, WhyNotAllRead, WhyNoLog); r != nil {
		next := stepStarting
		if r.Code == WhyNoLog { // perhaps nothing runs that begins it
			next = stepNoOwner
		}
		return &finding{state: StateStarting, cause: t.Source + ": " + r.Text, next: next.of(t)}
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
		next:  stepPaused.of(t),
	}
}

func judgeHealing(_ *Outlook, t *Table) *finding {
	if t.ResyncSince == nil {
		return nil
	}
	f := &finding{
		state: StateHealing, since: t.ResyncSince,
		cause: "the whole table " + t.Source + " is compared with Bigtable, and what differs is repaired",
		next:  stepHealing.of(t),
	}
	if r := t.Resync; r != nil && r.OnlyRefused() {
		f.cause = fmt.Sprintf("%s is equal to Bigtable, but for %s that the mapping or Bigtable %s (%s)", t.Source,
			plural(int(r.Refused), "item"), oneOf(int(r.Refused), "refuses", "refuse"), r.Why)
		f.next = stepHealingRefused.of(t)
	}
	return f
}

func judgeDifferences(_ *Outlook, t *Table) *finding {
	switch {
	case t.Has(WhyUnconfirmed) && !t.Has(WhyDiffers) && !t.Has(WhyCopyCanceled):
		return &finding{
			state: StateDoubt, since: t.Since, cause: t.Source + " was " + checkpoint.ReasonUnconfirmed,
			next: stepDoubt.of(t),
		}
	case t.Differing > 0 && t.OnlyArchiveDiffers:
		return &finding{
			state: StateDiffers, since: t.DiffersSince, weight: float64(t.Differing),
			cause: "the archive of " + t.Source + " lacks what " + plural(t.Differing, "gap") + " lost; Bigtable has it",
			next:  stepDiffersArchive.of(t),
		}
	case t.Differing > 0:
		return &finding{
			state: StateDiffers, since: t.Since, weight: float64(t.Differing),
			cause: t.Source + " lacks what " + plural(t.Differing, "gap") + " lost",
			next:  stepDiffers.of(t),
		}
	case t.Verify != nil && t.Verify.Different+t.Verify.Foreign > 0:
		return &finding{
			state: StateDiffers, weight: float64(t.Verify.Different + t.Verify.Foreign),
			cause: fmt.Sprintf("the continuous comparison of %s has found %s that %s, and %s", t.Source,
				plural(int(t.Verify.Different), "item"), oneOf(int(t.Verify.Different), "differs", "differ"),
				plural(int(t.Verify.Foreign), "foreign cell")),
			next: stepDiffersContinual.of(t),
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
		next: stepLetters.of(t),
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
		next: stepStreamOff.of(t),
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
				next: stepLate.of(t),
			}
		}
	}
	return nil
}

func judgeCopy(_ *Outlook, t *Table) *finding {
	switch {
	case t.Copy != nil:
		next := stepCopying
		if t.Copy.Paused != "" {
			next = stepCopyHeld
		}
		return &finding{
			state: StateCopying, since: t.Since, next: next.of(t),
			cause: "older items of " + t.Source + " are copied beside the stream: " + t.Copy.Sentence(),
		}
	case t.State == "copying":
		return &finding{
			state: StateCopying, cause: "the copy of " + t.Source + " begins", next: stepCopyBegins.of(t), since: t.Since,
		}
	}
	return nil
}

func judgeRest(_ *Outlook, t *Table) *finding {
	if len(t.Why) == 0 {
		return nil
	}
	next := stepNotReady
	switch t.Why[0].Code {
	case WhyPremise:
		next = stepHaltPremise
	case WhyCopyDue, WhyOpenUnread:
		next = stepStarting
	case WhyNotStored:
		next = stepNotStored
	}
	return &finding{state: StateNotReady, cause: t.Source + ": " + t.Why[0].Text, next: next.of(t)}
}

// within returns how much time is left, in words.
func within(seconds float64) string {
	if seconds < 1 {
		return "from now on"
	}
	return "in " + Ago(time.Duration(seconds*float64(time.Second)))
}

// urgency is greater, the less time is left until unread changes may be lost.
func (t *Table) urgency() float64 {
	if t.Retention < 0 {
		return -source.Retention.Seconds()
	}
	return -t.Retention
}

// away returns the state of a verdict about the service.
func (s *Service) away() string {
	if s.Refuses {
		return s.Name + " " + StateRefuses
	}
	return s.Name + " " + StateAway
}
