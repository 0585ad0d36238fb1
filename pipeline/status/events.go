package status

import (
	"fmt"
	"slices"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// Happening is something that happened to a table or a service, for the timeline of the page.
type Happening struct {
	At    time.Time // when it happened, or happened first
	Last  time.Time // when it happened last
	Times int       // in a row
	Table string    // "": it is about a service
	Text  string
	Tone  string // good, busy, warn or bad, as the page colours states
}

// Happenings returns what the log of a table says that happened, the newest first.
func (o *Observed) Happenings() (all []Happening) {
	for i := len(o.events) - 1; i >= 0; i-- {
		e := &o.events[i]
		if e.Last == 0 { // a claim, and nothing behind it yet
			continue
		}
		text, tone := eventText(e)
		all = append(all, Happening{
			At: e.At.Time().UTC(), Last: e.Last.Time().UTC(), Times: max(1, e.Times), Table: o.status.Source, Text: text,
			Tone: tone,
		})
	}
	return all
}

// eventText returns an event in words, and its colour.
func eventText(e *checkpoint.Event) (text, tone string) {
	by := ""
	if e.By != "" {
		by = " by " + e.By
	}
	switch e.Kind {
	case checkpoint.EventOwner:
		return "carried" + by, "busy"
	case checkpoint.EventRecovered:
		return "recovered after a lost log: the whole table is compared", "warn"
	case checkpoint.EventHalted:
		return sinkWord(e.Of) + "halted: " + e.Why, "bad"
	case checkpoint.EventWentOn:
		return sinkWord(e.Of) + "goes on", "good"
	case checkpoint.EventPaused:
		return "paused" + by, "warn"
	case checkpoint.EventResumed:
		return "resumed" + by, "good"
	case checkpoint.EventGap:
		return gapWord(e, ": ", ": ") + e.Why, "bad"
	case checkpoint.EventGapAccepted:
		return gapWord(e, ": reading goes on behind it", ": reading goes on behind them") + by, "warn"
	case checkpoint.EventGapClosed:
		return gapWord(e, " is closed: no sink lacks what it", " are closed: no sink lacks what they") +
			" lost, or that is waived", "good"
	case checkpoint.EventCopy:
		return "the copy of older items begins", "busy"
	case checkpoint.EventCopyHeld:
		return "the copy is held" + by, "warn"
	case checkpoint.EventCopyEnded:
		return "the copy is complete", "good"
	case checkpoint.EventCopyGivenUp:
		return "the copy is cancelled" + by, "warn"
	case checkpoint.EventResync:
		return "the comparison of the whole table begins" + by, "busy"
	case checkpoint.EventResyncEnded:
		return "the comparison of the whole table has ended", "good"
	case checkpoint.EventMapping:
		return "another mapping is accepted" + by, "busy"
	case checkpoint.EventFence:
		return "fenced for cutover " + e.Of + by, "busy"
	case checkpoint.EventFenceUndone:
		return "the fence of cutover " + e.Of + " is taken away" + by, "warn"
	case checkpoint.EventCertified:
		return "cutover " + e.Of + " is certified" + by, "good"
	}
	return string(e.Kind), "busy"
}

// gapWord names a gap, and chooses between the words for it and for several, whose number stands
// behind the text.
func gapWord(e *checkpoint.Event, it, them string) string {
	if e.Of == "" {
		return "gaps" + them
	}
	return "gap " + e.Of + it
}

// sinkWord names a sink before what became of it; nothing for the table itself.
func sinkWord(sink string) string {
	if sink == checkpoint.SinkPipeline || sink == "" {
		return ""
	}
	return "sink " + sink + " "
}

// Happening returns the begin or the end of a failure of a service for the timeline.
func (c *ServiceChange) Happening(now time.Time) Happening {
	h := Happening{At: now.UTC(), Last: now.UTC(), Times: 1}
	if c.Back {
		h.Text, h.Tone = fmt.Sprintf("%s is back, after %s", c.Service, Ago(c.After)), "good"
	} else {
		h.At = now.Add(-c.After).UTC()
		h.Text, h.Tone = fmt.Sprintf("%s fails: %v", c.Service, c.Err), "bad"
	}
	return h
}

// Newest returns the newest of several lists of happenings, the newest first.
func Newest(most int, lists ...[]Happening) []Happening {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b Happening) int { return b.Last.Compare(a.Last) })
	return all[:min(most, len(all))]
}
