package ir

import (
	"slices"
	"strings"
)

// Attributes is a set of attributes, either listed by name or all with exceptions, and the names
// under which they are written.
type Attributes struct {
	Names       []string        // sorted; nil: all but those in Except
	Except      map[string]bool // used only where Names is nil
	StripGlobal bool            // leaves out the aws:rep:* attributes of old global tables; used only where Names is nil
	Rename      map[string]string
}

// noAttributes is the empty set, for sources with cells that hold no attribute's value.
var noAttributes = &Attributes{Names: []string{}}

// allAttributes is the set of all attributes, without exception.
var allAttributes = &Attributes{}

// oneAttribute returns the set of a single attribute.
func oneAttribute(name string) Attributes { return Attributes{Names: []string{name}} }

// All reports whether the set is a wildcard, maybe with exceptions.
func (a *Attributes) All() bool { return a.Names == nil }

// Has reports whether an attribute is in the set.
func (a *Attributes) Has(name string) bool {
	if a.Names != nil {
		_, ok := slices.BinarySearch(a.Names, name)
		return ok
	}
	if a.Except != nil && a.Except[name] {
		return false
	}
	return !a.StripGlobal || !GlobalAttribute(name)
}

// Written returns the name under which an attribute is written.
func (a *Attributes) Written(name string) string {
	if to, ok := a.Rename[name]; ok {
		return to
	}
	return name
}

// Original returns the attribute that is written under a name.
func (a *Attributes) Original(written string) string {
	for from, to := range a.Rename {
		if to == written {
			return from
		}
	}
	return written
}

// GlobalAttribute reports whether an attribute is one that old global tables add to every item.
func GlobalAttribute(name string) bool { return strings.HasPrefix(name, "aws:rep:") }
