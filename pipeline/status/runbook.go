package status

import "strings"

// runbooks are the pages of the documentation about each state, below docs/.
var runbooks = map[string]string{
	StateGap:        "operations.md#tailracegap",
	StateFull:       "operations.md#tailracequeuefull",
	StateHalted:     "operations.md#tailracetablehalted",
	StateRetention:  "operations.md#tailraceretentionlow",
	StateNoOwner:    "operations.md#tailracenoowner",
	StateStarting:   "operations.md#tailracenotready",
	StateSinkHalted: "operations.md#tailracearchivehalted",
	StatePaused:     "operations.md#tailraceretentionlow",
	StateHealing:    "operations.md#tailracehealinglong",
	StateBehind:     "operations.md#tailracewrittenbehindfence",
	StateDiffers:    "operations.md#tailracediffers",
	StateDoubt:      "operations.md#tailracediffers",
	StateLetters:    "operations.md#tailracedeadletters",
	StateDeleted:    "tables.md#while-it-runs",
	StateGone:       "tables.md#while-it-runs",
	StateStreamOff:  "operations.md#tailracegap",
	StateLate:       "operations.md#tailraceappliedlaghigh",
	StateCopying:    "backfill.md",
	StateNotReady:   "operations.md#tailracenotready",
	StateThrottled:  "operations.md#tailraceretentionlow",
	StateFenced:     "cutover.md",
	StateElsewhere:  "operations.md#several-replicas",
}

// Runbook returns the page of the documentation about the state, below docs/; "" for a healthy one.
func (v *Verdict) Runbook() string {
	if strings.HasSuffix(v.State, " "+StateAway) || strings.HasSuffix(v.State, " "+StateRefuses) {
		return "operations.md#tailraceservicefailing"
	}
	return runbooks[v.State]
}
