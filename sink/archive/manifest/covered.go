package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

// covered unites the coverage of all objects of each class. Intervals that touch become one, so it
// grows with the shards and the holes, and not with the objects.
type covered struct {
	sets map[transform.EventClass]coverage.Set
	// ends maps the ends of the united intervals to their objects. Ends between two intervals that
	// touch are dropped.
	ends map[end]place
	// twice are the records that some objects share with earlier ones, by name.
	twice map[string]coverage.Set
}

// end is the end of an interval of a shard: its upper one, or its lower one.
type end struct {
	class transform.EventClass
	key   string
	at    change.SequenceNumber
	upper bool
}

// place is an object and its hour.
type place struct {
	object string
	hour   layout.Hour
}

func newCovered() *covered {
	return &covered{sets: map[transform.EventClass]coverage.Set{}, ends: map[end]place{},
		twice: map[string]coverage.Set{}}
}

// add covers what an object has. It returns a finding if some of it is in an earlier object too.
func (c *covered) add(class transform.EventClass, at place, has coverage.Set) []Finding {
	all := c.sets[class]
	if all == nil {
		all = coverage.Set{}
		c.sets[class] = all
	}
	var found []Finding
	if twice := all.Overlap(has); len(twice) > 0 {
		found = append(found, Finding{Kind: Duplicate, Grade: Different, Hour: at.hour, Class: class, Object: at.object,
			Text: duplicated(at.object, "another object of the class", twice)})
		if len(c.twice) < maxFindings {
			c.twice[at.object] = twice
		}
	}
	for _, key := range has.Keys() {
		for _, i := range has[key] {
			c.join(end{class, key, i.From, true}, end{class, key, i.From, false}, at)
			c.join(end{class, key, i.To, false}, end{class, key, i.To, true}, at)
			all.Add(key, i)
		}
	}
	return found
}

// duplicated reports two objects that cover the same records.
func duplicated(object, other string, twice coverage.Set) string {
	return fmt.Sprintf("%s holds records that %s has too (%s): events are archived twice; readers can leave out the "+
		"second of each id", object, other, ranges(twice))
}

// join records the end of an interval, or drops the end of the neighbor that it touches.
func (c *covered) join(neighbor, own end, at place) {
	if _, touches := c.ends[neighbor]; touches {
		delete(c.ends, neighbor)
		return
	}
	c.ends[own] = at
}

// holes returns findings about records that lie between the records of two objects and are in no
// object. last is the last closed hour. If a hole ends in it, the events of the hole may still be
// in hours that are not closed.
func (c *covered) holes(hs hours, last layout.Hour) (found []Finding) {
	for class, set := range c.sets {
		if class == transform.ClassHealed {
			continue // its intervals are lines of an export, and most lines hold no event
		}
		holes := set.Holes()
		for _, key := range holes.Keys() {
			for _, i := range holes[key] {
				before, after := c.ends[end{class, key, i.From, true}], c.ends[end{class, key, i.To, false}]
				from, to := min(before.hour, after.hour), max(before.hour, after.hour)
				if from == 0 { // beside records that are archived twice, ends are forgotten
					from = to
				}
				if to == 0 || !hs.any(from, to) {
					continue // outside of the hours that are asked for
				}
				found = append(found, holeBetween(class, key, i, before, after, hs.incomplete(from, to), to >= last))
			}
		}
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Hour, b.Hour), cmp.Compare(a.Text, b.Text))
	})
	return found
}

// holeBetween is the finding about one hole; why holds the ids of gaps and recoveries that explain
// it.
func holeBetween(
	class transform.EventClass, key string, i coverage.Interval, before, after place, why []string, late bool,
) Finding {
	f := Finding{Kind: Hole, Grade: Different, Hour: max(before.hour, after.hour), Class: class, Object: after.object}
	what := fmt.Sprintf("no object has the records of shard %s after %s up to %s, between %s and %s: ",
		key, i.From, i.To, before.object, after.object)
	switch {
	case len(why) > 0:
		f.Grade, f.Text = Unproven, what+"because of "+strings.Join(why, ", ")
	case late:
		f.Grade, f.Text = Unproven, what+"they may belong to an hour that is not closed; verify again after the next hour"
	default:
		f.Text = what + "deletions in that range were not archived; is an object between them missing?"
	}
	return f
}

// any reports whether an hour between two is closed and asked for.
func (hs hours) any(from, to layout.Hour) bool {
	for h := from; h <= to; h++ {
		if hs.closed(h) {
			return true
		}
	}
	return false
}

// shown is how many ranges a finding names.
const shown = 3

// ranges returns some of the intervals of a set in words.
func ranges(s coverage.Set) string {
	var words []string
	for _, key := range s.Keys() {
		for _, i := range s[key] {
			words = append(words, fmt.Sprintf("shard %s after %s up to %s", key, i.From, i.To))
		}
	}
	if more := len(words) - shown; more > 0 {
		words = append(words[:shown], fmt.Sprintf("%d more ranges", more))
	}
	return strings.Join(words, "; ")
}
