package transform

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// lintTwice refuses an attribute that two entries of one row write to the same column: every item that has it would be
// refused.
func (c *compiler) lintTwice(pl *plan) {
	for i, a := range pl.emitters {
		for j, b := range pl.emitters {
			wild, several := b.Source.(*Attrs)
			listed := !several || !wild.set.All()
			if i == j || listed && j > i || a.Family != b.Family || (a.Values.Flatten == nil) != (b.Values.Flatten == nil) || a.Entry.TS.S != b.Entry.TS.S || a.Aggregate() {
				continue
			}
			for _, name := range a.Source.Listed() {
				if b.maySpell(name) && len(a.Qualifier.Uses)+len(b.Qualifier.Uses) > 0 && a.ColumnOf(name) == b.ColumnOf(name) {
					c.ps.Errorf(a.Entry.To, "collision", c.once(b, name), "attribute %q is written twice to %s:%s, by `%s` and `%s`: every item that has it is refused", name, a.Family.Name, a.ColumnOf(name), b.Describe(), a.Describe())
				}
			}
		}
	}
}

// maySpell reports whether the emitter may write the column that the attribute's name gives: of a list or wildcard only
// if the attribute is in it, of other sources always.
func (e *Emitter) maySpell(attr string) bool {
	switch e.Source.(type) {
	case *Attrs, *Document:
		return e.Holds(attr)
	}
	return true
}

// once says how an attribute is taken from one of the entries that write it.
func (c *compiler) once(e *Emitter, name string) string {
	s, several := e.Source.(*Attrs)
	switch {
	case !several:
		return "remove one of them"
	case !s.set.All():
		return "take " + name + " out of the list"
	}
	return "add it to the exceptions: {attrs: all, except: [" + strings.Join(append(sorted(s.set.Except), name), ", ") + "], …}"
}

func sorted(set map[string]bool) (names []string) {
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// severalColumns says how an entry that gives several cells gets a column for each.
func (c *compiler) severalColumns(e *Emitter, variable string) string {
	_, qualifier, _ := strings.Cut(e.Entry.To.S, ":")
	write := func(column string) string { return "write \"" + e.Family.Name + ":" + column + "\"" }
	var strangers []string
	for name := range e.Qualifier.Uses {
		_, key := c.keyTypes()[name]
		if !key && !slices.Contains(tmpl.VarNames[:], name) && !e.Qualifier.Captured(name) {
			strangers = append(strangers, name)
		}
	}
	switch {
	case len(strangers) == 1:
		return write(strings.Replace(qualifier, "{"+strangers[0], "{"+variable, 1)) + ": {" + strangers[0] + "} is read as an attribute of the item"
	case qualifier == "":
		return write("{" + variable + "}")
	}
	return write(qualifier+"/{"+variable+"}") + ", or only {" + variable + "}"
}
