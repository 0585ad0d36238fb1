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
			listed := b.kind != "attrs" || b.names != nil
			if i == j || listed && j > i || a.family != b.family || a.flatten != b.flatten || a.src.TS.S != b.src.TS.S || a.aggregate() {
				continue
			}
			for _, name := range a.listed() {
				if b.covering(name) && len(a.qualifier.Uses)+len(b.qualifier.Uses) > 0 && a.columnOf(name) == b.columnOf(name) {
					c.ps.Errorf(a.src.To, "collision", c.once(b, name), "attribute %q is written twice to %s:%s, by `%s` and `%s`: every item that has it is refused", name, a.family.Name, a.columnOf(name), b.describe(), a.describe())
				}
			}
		}
	}
}

// once says how an attribute is taken from one of the entries that write it.
func (c *compiler) once(e *emitter, name string) string {
	switch {
	case e.kind != "attrs":
		return "remove one of them"
	case e.names != nil:
		return "take " + name + " out of the list"
	}
	return "add it to the exceptions: {attrs: all, except: [" + strings.Join(append(sorted(e.except), name), ", ") + "], …}"
}

func sorted(set map[string]bool) (names []string) {
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// listed are the attributes that an entry names one by one.
func (e *emitter) listed() []string {
	switch e.kind {
	case "attr":
		return []string{e.attr}
	case "attrs":
		return e.names
	}
	return nil
}

// columnOf is the column template of one attribute.
func (e *emitter) columnOf(name string) string {
	if to, ok := e.rename[name]; ok {
		name = to
	}
	return strings.NewReplacer("{attr}", name, "{path}", name).Replace(e.qualifier.Source)
}

// severalColumns says how an entry that gives several cells gets a column for each.
func (c *compiler) severalColumns(e *emitter, variable string) string {
	_, qualifier, _ := strings.Cut(e.src.To.S, ":")
	write := func(column string) string { return "write \"" + e.family.Name + ":" + column + "\"" }
	var strangers []string
	for name := range e.qualifier.Uses {
		_, key := c.keyTypes()[name]
		if !key && !slices.Contains(tmpl.VarNames[:], name) && !e.qualifier.Captured(name) {
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
