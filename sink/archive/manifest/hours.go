package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

// hours is what the manifests say about the hours that they close; some 200 bytes for each class
// and hour.
type hours map[layout.Hour]map[transform.EventClass]*tally

// tally is what the manifests say about a class in an hour, supplements included.
type tally struct {
	named                              int64 // events in objects
	claimed                            int64 // events that the entries of the hour state
	deleted, skipped, letters, counted int64
	isCounted                          bool
	incomplete                         []string
}

// add takes one entry of a manifest. An entry of a later manifest adds objects, and replaces what
// is known of the hour, unless the hour was forgotten before.
func (hs hours) add(h *Hour) {
	classes := hs[h.Hour]
	if classes == nil {
		classes = map[transform.EventClass]*tally{}
		hs[h.Hour] = classes
	}
	t := classes[h.Class]
	if t == nil {
		t = &tally{}
		classes[h.Class] = t
	}
	for i := range h.Objects {
		t.named += h.Objects[i].Events
	}
	t.claimed += h.Events
	if h.Added {
		t.deleted, t.skipped, t.letters = t.deleted+h.Deleted, t.skipped+h.Skipped, t.letters+h.Letters
		t.incomplete = append(slices.Clone(t.incomplete), h.Incomplete...)
		slices.Sort(t.incomplete)
		t.incomplete = slices.Compact(t.incomplete)
		return
	}
	t.deleted, t.skipped, t.letters, t.incomplete = h.Deleted, h.Skipped, h.Letters, h.Incomplete
	if t.isCounted = h.Counted != nil; t.isCounted {
		t.counted = *h.Counted
	}
}

// closed reports whether an hour is closed.
func (hs hours) closed(h layout.Hour) bool { return hs[h] != nil }

// incomplete returns the ids of what made hours incomplete, from one to another, in any class: a
// gap of the stream is one for all.
func (hs hours) incomplete(from, to layout.Hour) (ids []string) {
	for h := from; h <= to; h++ {
		for _, t := range hs[h] {
			ids = append(ids, t.incomplete...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// report adds what is wrong with the hours, and their sums.
func (hs hours) report(r *Report) {
	order := slices.Sorted(maps.Keys(hs))
	if len(order) == 0 {
		return
	}
	r.First, r.Last, r.Hours = order[0], order[len(order)-1], len(order)
	next := order[0]
	spans := map[transform.EventClass]*span{}
	for _, h := range order {
		if h > next {
			r.add(missingHours(next, h-1))
		}
		next = h + 1
		healed := ""
		if t := hs[h][transform.ClassHealed]; t != nil {
			healed = fmt.Sprintf("; of what was lost, %s of class healed were made from exports: what was created and "+
				"deleted within one of their windows is still missing", count(t.named, "event"))
		}
		for _, class := range slices.Sorted(maps.Keys(hs[h])) {
			t := hs[h][class]
			t.report(r, Finding{Hour: h, Class: class})
			s, ids := spans[class], strings.Join(t.incomplete, ", ")
			if s != nil && s.last == h-1 && s.ids == ids && s.healed == healed {
				s.last = h
			} else {
				s.report(r, class)
				spans[class] = &span{first: h, last: h, ids: ids, healed: healed}
			}
		}
	}
	for _, class := range slices.Sorted(maps.Keys(spans)) {
		spans[class].report(r, class)
	}
}

// span is a run of hours that are incomplete for the same reasons: a lost stream makes three days
// so.
type span struct {
	first, last layout.Hour
	ids         string // "": they are complete
	healed      string // what was brought back in the hour
}

func (s *span) report(r *Report, class transform.EventClass) {
	if s == nil || s.ids == "" {
		return
	}
	f := Finding{Kind: HourIncomplete, Grade: Unproven, Hour: s.first, Class: class}
	hours := s.first.String()
	if s.last > s.first {
		f.Until, hours = s.last, fmt.Sprintf("%s to %s", s.first, s.last)
	}
	f.Text = fmt.Sprintf("%s, %s: events may be missing because of %s: of a gap, `replicator gaps list` says what was "+
		"lost; ids that begin with archive- are times in which the archive's stream was lost, or had no objects%s",
		hours, class, s.ids, s.healed)
	r.add(f)
}

// report adds what is wrong with the numbers of a class in an hour; at names the place.
func (t *tally) report(r *Report, at Finding) {
	r.Events, r.Deleted = r.Events+t.named, r.Deleted+t.deleted
	r.Skipped, r.Letters = r.Skipped+t.skipped, r.Letters+t.letters
	say := func(kind Kind, grade Grade, text string, args ...any) {
		f := at
		f.Kind, f.Grade, f.Text = kind, grade, fmt.Sprintf("%s, %s: ", at.Hour, at.Class)+fmt.Sprintf(text, args...)
		r.add(f)
	}
	wrong := Different
	if len(t.incomplete) > 0 {
		wrong = Unproven // the numbers cannot add up, and the reason is known
	}
	if t.named != t.claimed {
		say(CountWrong, Different, "the manifests name objects of %s and say %d: a manifest is wrong, report it",
			count(t.named, "event"), t.claimed)
	}
	if at.Class != transform.ClassTTL {
		return
	}
	if have := t.named + t.skipped + t.letters; have != t.deleted {
		say(CountWrong, wrong, "the log held %s, but %d are archived, %d not to be archived and %d dead letters: "+
			"%s", count(t.deleted, "deletion"), t.named, t.skipped, t.letters, countAdvice(t.deleted-have))
	}
	switch {
	case t.isCounted && t.counted != t.deleted:
		say(CountWrong, wrong, "%s counted when they were read, but the log held %d: %s",
			count(t.counted, "deletion"), t.deleted, countAdvice(t.counted-t.deleted))
	case !t.isCounted && len(t.incomplete) == 0:
		say(Uncounted, Unproven, "deletions were not counted by themselves when they were read: "+
			"that these are all cannot be shown (%s); there is nothing to do", count(t.named, "event"))
	}
}

// countAdvice returns what a wrong count means and what to do.
func countAdvice(lost int64) string {
	if lost > 0 {
		return fmt.Sprintf("%d are lost; `replicator gaps list` and the log of that time may say why", lost)
	}
	return fmt.Sprintf("%d too many; look for duplicates among the findings", -lost)
}

func missingHours(from, to layout.Hour) Finding {
	what := from.String() + " was never closed"
	if to > from {
		what = fmt.Sprintf("%s to %s were never closed", from, to)
	}
	return Finding{Kind: HourMissing, Grade: Different, Hour: from,
		Text: what + ", though later hours were: a manifest is missing, or the replicator did not write it; " +
			"look at the findings about manifests first"}
}

// count returns a number of things in words.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
