package ir

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/transform/lang"
)

// Draft turns one table's mapping into its program, noting every problem it meets.
type Draft struct {
	Program  *Program
	Mapping  *Mapping
	Problems lang.Problems
	Secrets  map[string][]byte
	Personal map[string]bool
	Broken   bool // errors were found before the proofs: what follows from them is not reported

	byName map[string]*FamilyRule
}

// NewDraft returns an empty draft for a table.
func NewDraft(t Table) *Draft {
	return &Draft{Program: &Program{Table: t}, byName: map[string]*FamilyRule{}, Secrets: map[string][]byte{},
		Personal: map[string]bool{}}
}

// AddFamily declares a family.
func (c *Draft) AddFamily(f *FamilyRule) {
	c.byName[f.Name] = f
	c.Program.FamilyRules = append(c.Program.FamilyRules, f)
	c.Program.Families = append(c.Program.Families, f.Family)
}

// Target resolves "family:qualifier".
func (c *Draft) Target(to lang.Text) (*FamilyRule, string, bool) {
	name, qualifier, ok := strings.Cut(to.S, ":")
	if !ok {
		c.Problems.Errorf(to, "to", "write \"family:qualifier\"", "%q names no column", to.S)
		return nil, "", false
	}
	f := c.Family(name, to)
	return f, qualifier, f != nil
}

func (c *Draft) Family(name string, at lang.Text) *FamilyRule {
	if f := c.byName[name]; f != nil {
		return f
	}
	names := make([]string, 0, len(c.byName))
	for n := range c.byName {
		names = append(names, n)
	}
	slices.Sort(names)
	hint := "declare it: families: {" + name + ": {max_versions: 1}}"
	if near := lang.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? Declared: " + strings.Join(names, ", ")
	}
	c.Problems.Errorf(at, "family", hint, "column family %q is not declared", name)
	return nil
}

func (c *Draft) Delimiter() string {
	if len(c.Mapping.Delimiter.S) == 1 {
		return c.Mapping.Delimiter.S
	}
	return "#"
}

func (c *Draft) KeyTypes() map[string]byte {
	s := c.Program.Table.Schema
	out := map[string]byte{s.Partition.Name: s.Partition.Type}
	if s.Sort != nil {
		out[s.Sort.Name] = s.Sort.Type
	}
	return out
}

func (c *Draft) KeyNames() []string {
	s := c.Program.Table.Schema
	if s.Sort == nil {
		return []string{s.Partition.Name}
	}
	return []string{s.Partition.Name, s.Sort.Name}
}
