package checkpoint

import (
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// Event is something that happened to the table and that an operator may ask for later: who owned
// it, paused it or let it go on, what halted it, and what became of gaps, copies and cutovers. The
// state holds the newest ones. Nothing is decided by them.
type Event struct {
	Kind EventKind `json:"kind"`
	// Of is what it is about: a sink, or the ID of a gap, copy, resync, mapping or cutover. It is
	// empty for several gaps.
	Of  string        `json:"of,omitempty"`
	By  string        `json:"by,omitempty"`  // the owner or operator
	Why string        `json:"why,omitempty"` // the reason of a halt or a gap, shortened
	At  change.Millis `json:"at"`            // service clock; 0: not known yet
	// Times is how often it happened in a row, if more than once; Last is when it did last. A table
	// that is halted is claimed and halted again at each try.
	Times int           `json:"times,omitempty"`
	Last  change.Millis `json:"last,omitempty"`
}

// EventKind is a kind of Event.
type EventKind string

// The kinds.
const (
	EventOwner       EventKind = "owner"        // another owner, or a new claim of the same
	EventRecovered   EventKind = "recovered"    // a life that follows a lost log
	EventHalted      EventKind = "halted"       //
	EventWentOn      EventKind = "went_on"      // a halt is over
	EventPaused      EventKind = "paused"       //
	EventResumed     EventKind = "resumed"      //
	EventGap         EventKind = "gap"          //
	EventGapAccepted EventKind = "gap_accepted" // reading goes on behind it
	EventGapClosed   EventKind = "gap_closed"   // no sink lacks anything that is not waived
	EventCopy        EventKind = "copy"         // has begun
	EventCopyHeld    EventKind = "copy_held"    // paused
	EventCopyEnded   EventKind = "copy_ended"   //
	EventCopyGivenUp EventKind = "copy_given_up"
	EventResync      EventKind = "resync"       // of the whole table
	EventResyncEnded EventKind = "resync_ended" //
	EventMapping     EventKind = "mapping"      // another one was accepted
	EventFence       EventKind = "fence"        // of a cutover
	EventFenceUndone EventKind = "fence_undone" //
	EventCertified   EventKind = "certified"    // a cutover
)

const (
	eventsKept = 500
	// eventWindow is among how many of the newest events one that happens again is counted. A try
	// of a halted table is a claim, and the end and the begin of a halt of each sink and of the
	// pipeline: seven events, or eight where two processes try in turn. With fewer, a table that is
	// halted for hours would push out all that happened before.
	eventWindow = 8
	whyLongest  = 240 // bytes of Event.Why, Of and By
	// together is how soon an event must follow an earlier one to be counted with it, in
	// milliseconds.
	together = 3600 * 1000
)

// situation is what events are found in: they are what differs before and after an entry, whatever
// entry it was.
type situation struct {
	life                  uint64
	paused                bool
	halts                 map[string]*Halt
	gaps                  int       // how many there are: none is ever removed
	gapStages             []gapSeen // of each gap, where the entry may change one that is known
	copy, resync, mapping string
	held, ended, givenUp  bool // of the copy
	fence                 string
	certified             bool
}

// eventful reports whether an entry may begin or end something. Frames, beats and the marks of
// sinks do not: they are most of a log.
func eventful(body any) bool {
	switch b := body.(type) {
	case *Frame, *Beat, *Snapshot:
		return false
	case *Marks:
		return len(b.Retired) > 0
	}
	return true
}

// gapSeen is how far a gap has come, as far as events show it.
type gapSeen struct{ open, closed bool }

// changesGaps reports whether an entry may change a gap that is known. All other entries only add
// gaps: they must not cost more, the more there are, because a stream of thousands of shards that
// was not read for a day gets a gap for each.
func changesGaps(body any) bool {
	switch body.(type) {
	case *Control, *Healed, *Marks:
		return true
	}
	return false
}

// gapSeen returns how far a gap has come.
func (s *State) gapSeen(g *Gap) gapSeen {
	return gapSeen{open: !g.Accepted, closed: g.Accepted && len(s.DifferingSinks(g)) == 0}
}

// situation returns how the state is now, for events that an entry with the body begins or ends.
func (s *State) situation(body any) situation {
	x := situation{life: s.Life, paused: s.Paused, halts: s.AllHalts(), gaps: len(s.Gaps)}
	if changesGaps(body) {
		for i := range s.Gaps {
			x.gapStages = append(x.gapStages, s.gapSeen(&s.Gaps[i]))
		}
	}
	if c := s.Copy; c != nil {
		x.copy, x.held, x.ended, x.givenUp = c.ID, c.Paused || c.PausedWhy != "", c.Done(), c.Canceled
	}
	if s.Resync != nil {
		x.resync = s.Resync.ID
	}
	if s.Accepted != nil {
		x.mapping = s.Accepted.To
	}
	if s.Fence != nil {
		x.fence, x.certified = s.Fence.ID, s.Fence.Certified > 0
	}
	return x
}

// noteEvents notes what an entry has changed since the situation before it.
func (s *State) noteEvents(before *situation, body any) {
	now, by := s.situation(body), ""
	if c, ok := body.(*Control); ok {
		by = c.By
	}
	note := func(happened bool, kind EventKind, of string) {
		if happened {
			s.noteEvent(Event{Kind: kind, Of: of, By: by, At: s.eventTime(body)})
		}
	}
	if claim, ok := body.(*Claim); ok {
		note(before.life != 0 && now.life != before.life, EventRecovered, "")
		s.noteEvent(Event{Kind: EventOwner, By: claim.Owner})
	}
	note(now.paused && !before.paused, EventPaused, "")
	note(!now.paused && before.paused, EventResumed, "")
	s.noteHalts(before, &now, note)
	s.noteGaps(before, &now, note)
	note(now.copy != before.copy, EventCopy, now.copy)
	other := now.copy != before.copy
	note(now.held && (other || !before.held), EventCopyHeld, now.copy)
	note(now.ended && (other || !before.ended), EventCopyEnded, now.copy)
	note(now.givenUp && (other || !before.givenUp), EventCopyGivenUp, now.copy)
	note(before.resync != "" && now.resync != before.resync, EventResyncEnded, before.resync)
	note(now.resync != "" && now.resync != before.resync, EventResync, now.resync)
	note(now.mapping != before.mapping, EventMapping, now.mapping)
	note(before.fence != "" && now.fence == "", EventFenceUndone, before.fence)
	note(now.fence != "" && now.fence != before.fence, EventFence, now.fence)
	note(now.certified && !before.certified, EventCertified, now.fence)
}

func (s *State) noteHalts(before, now *situation, note func(bool, EventKind, string)) {
	for _, sink := range slices.Sorted(maps.Keys(before.halts)) {
		note(now.halts[sink] == nil, EventWentOn, sink)
	}
	for _, sink := range slices.Sorted(maps.Keys(now.halts)) {
		if h := now.halts[sink]; before.halts[sink] != h {
			s.noteEvent(Event{Kind: EventHalted, Of: sink, Why: shortened(h.Reason), At: max(h.At, s.Date)})
		}
	}
}

// noteGaps notes gaps that were found, accepted or closed. Several in a row of one kind are one
// event: see Event.again.
func (s *State) noteGaps(before, now *situation, note func(bool, EventKind, string)) {
	for i := before.gaps; i < now.gaps; i++ {
		if g := &s.Gaps[i]; !g.BeforeStart() {
			s.noteEvent(Event{Kind: EventGap, Of: g.ID(), Why: shortened(g.Reason), At: s.Date})
		}
	}
	for i, was := range before.gapStages {
		is, g := now.gapStages[i], &s.Gaps[i]
		if is == was || g.BeforeStart() {
			continue
		}
		id := g.ID()
		note(was.open && !is.open, EventGapAccepted, id)
		note(is.closed && !was.closed, EventGapClosed, id)
	}
}

// eventTime returns when an entry was made; 0 for a claim, which has no time. The entry after it
// has one.
func (s *State) eventTime(body any) change.Millis {
	switch b := body.(type) {
	case *Claim:
		return 0
	case *Control:
		return max(b.At, s.Date)
	}
	return s.Date
}

// dateEvents completes the events whose time was not known, by an entry that has one: claims have
// none. A list that was taken from the state before stays as it is.
func (s *State) dateEvents(body any) {
	switch body.(type) {
	case *Frame, *Beat, *Graph, *Start, *Gap:
	default:
		return
	}
	first := max(0, len(s.Events)-2*eventWindow)
	undated := func(e Event) bool { return e.Last == 0 }
	if s.Date == 0 || !slices.ContainsFunc(s.Events[first:], undated) {
		return
	}
	s.Events = slices.Clone(s.Events)
	for i := first; i < len(s.Events); i++ {
		if e := &s.Events[i]; undated(*e) {
			e.Last = s.Date
			if e.At == 0 {
				e.At = s.Date
			}
		}
	}
}

// noteEvent adds an event, or counts one that has just happened again.
func (s *State) noteEvent(e Event) {
	e.Last, e.Of, e.By = e.At, shortened(e.Of), shortened(e.By)
	for i := len(s.Events) - 1; i >= max(0, len(s.Events)-eventWindow); i-- {
		old := s.Events[i]
		if soon := old.Last == 0 || max(e.At, s.Date)-old.Last <= together; soon && old.again(&e) {
			old.Times, old.Last = max(old.Times, 1)+1, e.Last
			if old.Of != e.Of {
				old.Of = ""
			}
			s.Events = append(slices.Delete(slices.Clone(s.Events), i, i+1), old) // the newest event stands last
			return
		}
	}
	if len(s.Events) >= eventsKept {
		s.Events = s.Events[1:]
	}
	s.Events = append(slices.Clip(s.Events), e)
}

// again reports whether an event is counted with an earlier one. Of gaps that follow each other
// only the number is kept: a stream may get thousands at once, which would push out all that
// happened before, and `gaps list` shows each.
func (e *Event) again(next *Event) bool {
	if e.Kind != next.Kind || e.By != next.By {
		return false
	}
	switch e.Kind {
	case EventOwner, EventHalted, EventWentOn:
		return e.Of == next.Of && e.Why == next.Why
	case EventGap, EventGapAccepted, EventGapClosed:
		return true
	}
	return false
}

// shortened returns the begin of a reason.
func shortened(why string) string {
	if len(why) <= whyLongest {
		return why
	}
	return strings.ToValidUTF8(why[:whyLongest], "") + " …"
}
