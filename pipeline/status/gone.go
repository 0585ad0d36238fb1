package status

import (
	"slices"
	"strings"
)

// The first words of config.GoneVanished and config.GoneTags, in reasons.
const (
	vanishedWord = "vanished: "
	tagsWord     = "no longer chosen: "
)

// codeGone is the code of a table that is halted because DynamoDB does not have it.
const codeGone = "source_gone"

// vanished reports whether the table is gone from DynamoDB: that it has no owner is no other trouble.
func (t *Table) vanished() bool {
	return slices.ContainsFunc(t.Reasons, func(r string) bool { return strings.HasPrefix(r, vanishedWord) })
}

// judgeGone says how to end what is kept of a table that no selection chooses any more.
func judgeGone(_ *Outlook, t *Table) *finding {
	retire := "`replicator table retire --table " + t.Source + "`"
	for _, r := range t.Reasons {
		cause, _, _ := strings.Cut(r, "; its state is kept") // Next says it
		switch {
		case strings.HasPrefix(r, vanishedWord):
			next := retire
			if !t.Ended && t.Code != codeGone { // what is left in its stream is still read
				next = "wait until `replicator status` shows it halted: its stream is read to its end then; then " + retire
			}
			return &finding{StateGone, t.Source + " has " + cause, next, nil}
		case strings.HasPrefix(r, tagsWord):
			return &finding{StateGone, t.Source + " is " + cause,
				"give it its tags back; or write it under `except`, restart, and then " + retire, nil}
		}
	}
	return nil
}
