package ir

import (
	"maps"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
)

// Draft is a table's program while it is compiled, with all problems met so far.
type Draft struct {
	Program  *Program
	Mapping  *Mapping // with a preset spelled out
	Problems problem.Collector
	Secrets  map[string][]byte
	Personal map[string]bool // attributes listed under pii
	Broken   bool            // errors were found before the proofs; problems that only follow from them are not reported

	byName map[string]*FamilyRule
}

// NewDraft returns an empty draft for a table.
func NewDraft(t Table) *Draft {
	return &Draft{
		Program: &Program{Table: t}, Secrets: map[string][]byte{}, Personal: map[string]bool{},
		byName: map[string]*FamilyRule{},
	}
}

// AddFamily declares a family.
func (d *Draft) AddFamily(f *FamilyRule) {
	d.byName[f.Name] = f
	d.Program.FamilyRules = append(d.Program.FamilyRules, f)
	d.Program.Families = append(d.Program.Families, f.Family)
}

// Target resolves "family:qualifier"; ok is false, and the problem noted, when the text has another
// form or the family is not declared.
func (d *Draft) Target(to problem.Text) (f *FamilyRule, qualifier string, ok bool) {
	name, qualifier, ok := strings.Cut(to.S, ":")
	if !ok {
		d.Problems.Errorf(to, "to", "write \"family:qualifier\"", "%q names no column", to.S)
		return nil, "", false
	}
	f = d.Family(name, to)
	return f, qualifier, f != nil
}

// Family returns a declared family; nil, with the problem noted, when there is none of that name.
func (d *Draft) Family(name string, at problem.Text) *FamilyRule {
	if f := d.byName[name]; f != nil {
		return f
	}
	names := slices.Sorted(maps.Keys(d.byName))
	hint := "declare it: families: {" + name + ": {max_versions: 1}}"
	if near := problem.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? Declared: " + strings.Join(names, ", ")
	}
	d.Problems.Errorf(at, "family", hint, "column family %q is not declared", name)
	return nil
}

// Delimiter returns the character that separates the parts of row keys and columns.
func (d *Draft) Delimiter() string {
	if len(d.Mapping.Delimiter.S) == 1 {
		return d.Mapping.Delimiter.S
	}
	return "#"
}

// KeyTypes returns the key attributes with their types: S, N or B.
func (d *Draft) KeyTypes() map[string]byte {
	out := map[string]byte{}
	for _, name := range d.KeyNames() {
		out[name] = d.Program.KeyType(name)
	}
	return out
}

// KeyNames returns the key attributes, the partition key first.
func (d *Draft) KeyNames() []string {
	s := d.Program.Table.Schema
	if s.Sort == nil {
		return []string{s.Partition.Name}
	}
	return []string{s.Partition.Name, s.Sort.Name}
}
