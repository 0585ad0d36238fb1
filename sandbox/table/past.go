package table

import (
	"slices"
	"sort"
	"time"
)

// Change is one change of one item. Old or New is nil where there was or is no item.
type Change struct {
	At       time.Time
	Key      Key
	Old, New *Record
}

// past has the changes of a table since a time, oldest first. It costs about 60 bytes a change and
// keeps replaced records, so a table has one only while it needs it: for point-in-time recovery,
// and for reads that lag.
type past struct {
	since   time.Time
	changes []Change
}

// KeepPast remembers the table's changes from a time on, if it does not yet.
func (t *Table) KeepPast(since time.Time) {
	if t.past == nil {
		t.past = &past{since: since}
	}
}

// ForgetPast drops all recorded changes and stops recording.
func (t *Table) ForgetPast() { t.past = nil }

// TrimPast drops the changes before a time.
func (t *Table) TrimPast(before time.Time) {
	if t.past == nil || !t.past.since.Before(before) {
		return
	}
	at := t.past.first(before)
	t.past.changes = slices.Clone(t.past.changes[at:])
	t.past.since = before
}

// PastSince returns the time since which all changes are known.
func (t *Table) PastSince() (since time.Time, ok bool) {
	if t.past == nil {
		return time.Time{}, false
	}
	return t.past.since, true
}

// Remember remembers a change, if the table keeps its past. The caller makes the change under the
// same lock.
func (t *Table) Remember(key Key, old, now *Record, at time.Time) {
	if t.past == nil {
		return
	}
	if n := len(t.past.changes); n > 0 && at.Before(t.past.changes[n-1].At) {
		at = t.past.changes[n-1].At // the clock was moved back; the changes stay in order
	}
	t.past.changes = append(t.past.changes, Change{At: at, Key: key, Old: old, New: now})
}

// AsOf returns the table's items as they were at a time, changes at that very time included. Before
// the time since which the past is known it returns them as of that time. The caller holds the
// table's lock for writing; afterwards the result needs no lock. It costs as much as there are
// later changes.
func (t *Table) AsOf(at time.Time) *Items {
	items := &Items{tree: t.Items.tree.Clone(), bytes: t.Items.bytes}
	if t.past == nil {
		return items
	}
	for i := len(t.past.changes) - 1; i >= 0 && t.past.changes[i].At.After(at); i-- {
		switch c := &t.past.changes[i]; {
		case c.Old == nil:
			items.Delete(c.New)
		case c.New == nil:
			items.Put(nil, c.Old, nil)
		default:
			items.Put(c.New, c.Old, nil)
		}
	}
	return items
}

// Changes returns the changes from a time on and before another one, oldest first. The caller must
// not change them.
func (t *Table) Changes(from, to time.Time) []Change {
	if t.past == nil {
		return nil
	}
	first, end := t.past.first(from), t.past.first(to)
	return t.past.changes[first:max(first, end):max(first, end)]
}

// first returns the index of the first change at a time or later.
func (p *past) first(at time.Time) int {
	return sort.Search(len(p.changes), func(i int) bool { return !p.changes[i].At.Before(at) })
}
