package status

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/outcome"
)

// Verdict is the answer to "is all well, and if not, what is it?": one sentence, the same on the
// status page, in its title, and in the first line for a terminal.
type Verdict struct {
	State string `json:"state"` // one of the words below
	Ready bool   `json:"ready"`
	Table string `json:"table,omitempty"` // the one that shows it; of several the first
	Cause string `json:"cause"`
	// Since is when it began, as far as that is known; if neither log nor service records it, it is
	// when the daemon first observed the state.
	Since  *time.Time `json:"since,omitempty"`
	Next   string     `json:"next"`             // what to do, mostly a command
	Others int        `json:"others,omitempty"` // further reasons why something is not ready
}

// The states of a verdict, in the order of precedence: what loses changes stands before what holds
// them up, and that before what an operator has asked for.
const (
	StateGap       = "gap"
	StateFull      = "log full"
	StateHalted    = "halted"
	StateThrottled = "throttled"
	StateAway      = "away" // of a service: its name stands before it
	StateRetention = "retention low"
	StateNoOwner   = "no owner"
	StateStarting  = "starting"
	StatePaused    = "paused"
	StateHealing   = "healing"
	StateBehind    = "written behind the fence"
	StateDiffers   = "differs"
	StateDoubt     = "unconfirmed" // whether the copied export was whole
	StateLetters   = "dead letters"
	StateLate      = "late"
	StateCopying   = "copying"
	StateGone      = "not chosen" // by a selection any more: vanished, or other tags
	StateNotReady  = "not ready"  // for a reason that has no state of its own
	StateFenced    = "fenced"
	StateElsewhere = "standing by" // other replicas carry tables, and this one does not know how these are
	StateHealthy   = "healthy"
)

// Outlook is what a verdict is computed from.
type Outlook struct {
	Failing []Service // services that the daemon cannot use
	Tables  []Table
	Reasons int      // why something is not ready, over all tables
	Notes   []string // those of the reasons that are about no table of the pipeline
}

// Service is a service that fails.
type Service struct {
	Name      string    `json:"name"`
	Since     time.Time `json:"since"`
	Error     string    `json:"error"`
	Throttled bool      `json:"throttled,omitempty"` // it answers, and asks for fewer calls
}

// away returns the state of a verdict about the service.
func (s *Service) away() string { return s.Name + " " + StateAway }

// finding is what a rule found about a table or a service.
type finding struct {
	state, cause, next string
	since              *time.Time
}

// Judge returns the verdict: a function of what is known.
func Judge(o Outlook) Verdict {
	if len(o.Tables) == 0 {
		if f := judgeServices(&o, nil); f != nil {
			return f.verdict(&o, "")
		}
		return Verdict{State: StateStarting, Cause: "no table is configured or known yet", Next: "`replicator check`"}
	}
	for _, judge := range rules {
		for i := range o.Tables {
			if f := judge(&o, &o.Tables[i]); f != nil {
				return f.verdict(&o, o.Tables[i].Source)
			}
		}
	}
	if f := judgeNotes(&o); f != nil {
		return f.verdict(&o, "")
	}
	for i := range o.Tables {
		if f := judgeFence(&o.Tables[i]); f != nil {
			return f.verdict(&o, o.Tables[i].Source)
		}
	}
	if f := judgeElsewhere(o.Tables); f != nil {
		return f.verdict(&o, "")
	}
	return Verdict{State: StateHealthy, Ready: true, Cause: health(o.Tables), Next: "nothing to do"}
}

// verdict returns the verdict for a finding about a table; "": about none.
func (f *finding) verdict(o *Outlook, table string) Verdict {
	if slices.ContainsFunc(o.Failing, func(s Service) bool { return f.state == s.away() }) {
		table = "" // every table needs the service
	}
	return Verdict{
		State: f.state, Table: table, Cause: f.cause, Next: f.next, Since: f.since,
		Others: max(0, o.Reasons-1), Ready: o.Reasons == 0,
	}
}

// rules judge one table after the other; the first rule that finds something decides.
var rules = []func(*Outlook, *Table) *finding{
	judgeGap, judgeFull, judgeHalt, judgeServices, judgeThrottle, judgeRetention, judgeOwner, judgeStart, judgePause,
	judgeHealing, judgeBehindFence, judgeDifferences, judgeLetters, judgeUnread, judgeGone, judgeLate, judgeCopy,
	judgeRest,
}

func judgeGap(_ *Outlook, t *Table) *finding {
	if t.Gaps == 0 {
		return nil
	}
	return &finding{StateGap, fmt.Sprintf("changes of %s were lost before they were read (%s); nothing is read behind %s",
		t.Source, plural(t.Gaps, "gap"), oneOf(t.Gaps, "it", "them")),
		"`replicator gaps list --table " + t.Source + "`, then `replicator repair --gaps --table " + t.Source + "`", t.Since}
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
	return &finding{StateFull, cause, next, nil}
}

func judgeHalt(o *Outlook, t *Table) *finding {
	if len(t.Halts) == 0 && t.State != "halted" || t.vanished() && t.Code == outcome.CodeSourceGone {
		return nil
	}
	halted, next := t.Source+" is halted: ", "mend the cause, then `replicator resume --table "+t.Source+"`"
	if n := o.haltedAs(t); n > 1 {
		halted = plural(n, "table") + " are halted, " + t.Source + " because: "
		next = "mend the cause: each table is tried again every minute"
	}
	switch t.Code {
	case outcome.CodeMissing:
		next = "`replicator schema --apply`; the table goes on by itself within a minute"
	case outcome.CodePremise:
		next = "the command that the cause names; writing goes on by itself within two minutes"
	case outcome.CodeLogUnread:
		next = "bring the volume of the queue back; the table goes on by itself within a minute"
	case outcome.CodeRefused, outcome.CodeRowMissing: // no try passes what is stored
		next = "as the cause says; `replicator check` shows whether anything is left to do"
	}
	return &finding{StateHalted, halted + t.Halt, next, t.Since}
}

// haltedAs returns how many tables are halted with the code of a table's halt.
func (o *Outlook) haltedAs(t *Table) (n int) {
	for i := range o.Tables {
		if other := &o.Tables[i]; other.Code == t.Code && (len(other.Halts) > 0 || other.State == "halted") {
			n++
		}
	}
	return n
}

func judgeThrottle(_ *Outlook, t *Table) *finding {
	if t.ThrottledSince == nil {
		return nil
	}
	return &finding{StateThrottled, "DynamoDB throttles the reading of " + t.Source + ", which goes on slower",
		"look for other readers of the stream: DynamoDB allows two per shard; `replicator status --watch`", t.ThrottledSince}
}

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
	return &finding{worst.away(), worst.Name + " does not answer or refuses every call (" + worst.Error +
		"): " + cause, "`replicator check` tests the connection and the permissions", &worst.Since}
}

func judgeRetention(_ *Outlook, t *Table) *finding {
	if t.Retention < 0 || t.Retention >= lowRetention.Seconds() {
		return nil
	}
	return &finding{StateRetention, "unread changes of " + t.Source + " are lost in " + hours(t.Retention),
		"`replicator status --table " + t.Source + "` says what holds reading up", nil}
}

func judgeOwner(_ *Outlook, t *Table) *finding {
	if t.vanished() {
		return nil
	}
	if r := t.reason(WhyNoOwner); r != nil {
		return &finding{StateNoOwner, t.Source + ": " + r.Text, "is a `replicator run` running? `replicator status`", nil}
	}
	return nil
}

func judgeStart(_ *Outlook, t *Table) *finding {
	if t.vanished() {
		return nil
	}
	if r := t.reason(WhyNotStarted, WhyNotAllRead, WhyNoLog); r != nil {
		return &finding{StateStarting, t.Source + ": " + r.Text, "wait; `replicator check` if it lasts for minutes", nil}
	}
	return nil
}

func judgePause(_ *Outlook, t *Table) *finding {
	if t.State != "paused" {
		return nil
	}
	return &finding{StatePaused, t.Source + " is paused by an operator; DynamoDB keeps changes for 24 hours",
		"`replicator resume --table " + t.Source + "`", nil}
}

func judgeHealing(_ *Outlook, t *Table) *finding {
	if t.ResyncSince == nil {
		return nil
	}
	return &finding{StateHealing,
		"the whole table " + t.Source + " is compared with Bigtable, and what differs is repaired",
		"wait; `replicator status --watch` shows the progress", t.ResyncSince}
}

func judgeDifferences(_ *Outlook, t *Table) *finding {
	switch {
	case t.Has(WhyUnconfirmed) && !t.Has(WhyDiffers) && !t.Has(WhyCopyCanceled):
		return &finding{StateDoubt, t.Source + " was " + checkpoint.ReasonUnconfirmed,
			"`replicator verify --table " + t.Source + "` ends this when it finds everything equal", t.Since}
	case t.Differing > 0:
		return &finding{StateDiffers, t.Source + " lacks what " + plural(t.Differing, "gap") + " lost",
			"`replicator repair --gaps --table " + t.Source + "`", t.Since}
	case t.Verify != nil && t.Verify.Different+t.Verify.Foreign > 0:
		return &finding{StateDiffers, fmt.Sprintf("the continuous comparison knows %d items of %s that differ and %d "+
			"foreign cells", t.Verify.Different, t.Source, t.Verify.Foreign),
			"`replicator repair --from " + t.Verify.File + "`", nil}
	}
	return nil
}

func judgeLetters(_ *Outlook, t *Table) *finding {
	if t.DeadLetters == 0 {
		return nil
	}
	return &finding{StateLetters, fmt.Sprintf("%s of %s %s; the rest goes on", plural(t.DeadLetters, "change"), t.Source,
		oneOf(t.DeadLetters, "was refused for good and waits as a dead letter",
			"were refused for good and wait as dead letters")),
		"`replicator dlq list --table " + t.Source + "`", nil}
}

func judgeLate(_ *Outlook, t *Table) *finding {
	for _, code := range []ReasonCode{WhyLateApplied, WhyLateRead} {
		if r := t.reason(code); r != nil {
			return &finding{StateLate, t.Source + ": " + r.Text,
				"`replicator status --watch`; `replicator check` tests what it depends on", nil}
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
		return &finding{StateCopying,
			"older items of " + t.Source + " are copied beside the stream: " + t.Copy.Sentence(), next,
			t.Since}
	case t.State == "copying":
		return &finding{StateCopying, "the copy of " + t.Source + " begins", "wait", t.Since}
	}
	return nil
}

func judgeRest(_ *Outlook, t *Table) *finding {
	if len(t.Why) == 0 {
		return nil
	}
	return &finding{StateNotReady, t.Source + ": " + t.Why[0].Text, "`replicator status`", nil}
}

// hours returns a time left in words.
func hours(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
}

// Line returns the verdict as one sentence: state, cause, since when, next step.
func (v *Verdict) Line(now time.Time) string {
	b := &strings.Builder{}
	if v.State == "" {
		return "Nothing is known yet."
	}
	b.WriteString(strings.ToUpper(v.State[:1]) + v.State[1:])
	if v.Since != nil {
		layout := time.TimeOnly + "Z"
		if now.Sub(*v.Since) > 24*time.Hour {
			layout = time.DateOnly + " " + layout
		}
		b.WriteString(" since " + v.Since.UTC().Format(layout))
		if !now.Before(*v.Since) { // the clock may have been set back since
			b.WriteString(" (" + Ago(now.Sub(*v.Since)) + ")")
		}
	}
	b.WriteString(": " + strings.TrimSuffix(v.Cause, "."))
	if v.Others > 0 {
		b.WriteString("; and " + plural(v.Others, "further reason"))
	}
	return b.String() + ". Next: " + v.Next + "."
}

// Tracker tracks since when a process has observed the same state. Its zero value is ready for use,
// by any number of goroutines.
type Tracker struct {
	mu    sync.Mutex // covers what follows
	of    Verdict    // the state and table that were seen last
	since time.Time

	halted, haltedLast time.Time // of the halt that was seen last, and when it was
	haltedOf           Verdict
}

// haltGrace is how long a halt may be gone and count as the same: each try of a halted table ends
// its halt for a moment, and the log then holds the last try alone.
const haltGrace = 2 * time.Minute

// Note sets Verdict.Since to the earlier of its own time and the time at which the state was first
// observed.
func (t *Tracker) Note(v *Verdict, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.of.same(v) {
		t.of, t.since = *v, now.UTC()
	}
	since := t.since
	if v.State == StateHalted {
		if !t.haltedOf.same(v) || now.Sub(t.haltedLast) > haltGrace {
			t.haltedOf, t.halted = *v, since
		}
		t.haltedLast, since = now, t.halted
	}
	v.notAfter(&since)
}

// notAfter sets since when the state lasts, if that is earlier than what is known.
func (v *Verdict) notAfter(since *time.Time) {
	if since != nil && (v.Since == nil || since.Before(*v.Since)) {
		v.Since = since
	}
}

// same reports whether two verdicts are about the same trouble.
func (v *Verdict) same(other *Verdict) bool { return v.State == other.State && v.Table == other.Table }

// Adopt takes Since from a daemon's verdict about the same state, if it is earlier.
func (v *Verdict) Adopt(daemon *Verdict) {
	if v.same(daemon) {
		v.notAfter(daemon.Since)
	}
}
