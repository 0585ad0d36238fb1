package status

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Verdict is the answer to "is all well, and if not, what is it?": one sentence, the same on the
// status page, in its title, and in the first line for a terminal.
type Verdict struct {
	State string `json:"state"` // one of the words below
	Ready bool   `json:"ready"`
	Table string `json:"table,omitempty"` // the one that shows it; of several the worst
	Cause string `json:"cause"`
	// Since is when it began, as far as that is known; if neither log nor service records it, it is
	// when the daemon first observed the state.
	Since  *time.Time `json:"since,omitempty"`
	Next   string     `json:"next"`             // what to do, mostly a command
	Others int        `json:"others,omitempty"` // further reasons why something is not ready

	troubles []trouble // all that was found, in the order of precedence
}

// trouble is a state of a table; "": of none, or of every table.
type trouble struct{ state, table string }

// The states of a verdict, in the order of precedence: what loses changes stands before what holds
// them up, that before what an operator has asked for, and what is not ready before what is slow.
const (
	StateGap        = "gap"
	StateFull       = "log full"
	StateHalted     = "halted"
	StateAway       = "away"    // of a service: its name stands before it
	StateRefuses    = "refuses" // of a service: it answers, and does not accept credentials or permissions
	StateRetention  = "retention low"
	StateNoOwner    = "no owner"
	StateStarting   = "starting"
	StateSinkHalted = "archive halted" // and Bigtable goes on
	StatePaused     = "paused"
	StateHealing    = "healing"
	StateBehind     = "written behind the fence"
	StateDiffers    = "differs"
	StateDoubt      = "unconfirmed" // whether the copied export was whole
	StateLetters    = "dead letters"
	StateDeleted    = "deleted"    // DynamoDB does not have the table any more
	StateGone       = "not chosen" // by a selection any more
	StateStreamOff  = "stream disabled"
	StateLate       = "late"
	StateCopying    = "copying"
	StateNotReady   = "not ready" // for a reason that has no state of its own
	StateThrottled  = "throttled"
	StateFenced     = "fenced"
	StateElsewhere  = "standing by" // other replicas carry tables, and this one does not know how these are
	StateHealthy    = "healthy"
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
	Refuses   bool      `json:"refuses,omitempty"`   // credentials that are missing, expired or without permission
	Hint      string    `json:"hint,omitempty"`      // what ends it, where the client of the service can tell
}

// finding is what a rule found about a table or a service.
type finding struct {
	state, cause, next string
	since              *time.Time // nil: nothing records it
	table              string     // set by findings
	weight             float64    // of several tables in one state the heaviest is named
}

// Judge returns the verdict: a function of what is known.
//
// Rule 14: the first rule that finds something decides, about the table that shows it worst. What
// is not ready stands before what is slow.
func Judge(o Outlook) Verdict {
	all := findings(&o)
	v := all[0].verdict(&o)
	for i := range all {
		v.troubles = append(v.troubles, trouble{all[i].state, all[i].about(&o)})
	}
	return v
}

// findings returns what the rules find, in the order of precedence; at least one thing.
func findings(o *Outlook) (all []*finding) {
	add := func(f *finding) {
		if f != nil {
			all = append(all, f)
		}
	}
	if len(o.Tables) == 0 {
		add(judgeServices(o, &Table{}))
		return append(all, &finding{
			state: StateStarting, cause: "no table is configured or known yet", next: steps[stepNoTable],
		})
	}
	for _, judge := range rules {
		first := len(all)
		for i := range o.Tables {
			if f := judge(o, &o.Tables[i]); f != nil {
				f.table = o.Tables[i].Source
				all = append(all, f)
			}
		}
		slices.SortStableFunc(all[first:], func(a, b *finding) int { return cmp.Compare(b.weight, a.weight) })
	}
	add(judgeElsewhere(o.Tables))
	if len(all) == 0 {
		all = append(all, judgeHealth(o.Tables))
	}
	return all
}

// about returns the table that a finding is about; "": none, or every table.
func (f *finding) about(o *Outlook) string {
	if slices.ContainsFunc(o.Failing, func(s Service) bool { return f.state == s.away() }) {
		return "" // every table needs the service
	}
	return f.table
}

// verdict returns the verdict for a finding.
func (f *finding) verdict(o *Outlook) Verdict {
	return Verdict{
		State: f.state, Table: f.about(o), Cause: f.cause, Next: f.next, Since: f.since,
		Others: max(0, o.Reasons-1), Ready: o.Reasons == 0 && len(o.Tables) > 0,
	}
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
