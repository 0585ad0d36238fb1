package lang

import (
	"fmt"
	"strings"
	"unicode"
)

// Filter is one step of {name|filter(args)}.
type Filter struct {
	Name string
	Args []string
}

// TemplatePart is literal text, or a reference to a capture or attribute with filters, or a salt.
type TemplatePart struct {
	Literal string
	Name    string   // the reference; empty for literals
	Filters []Filter // applied from left to right
	Salt    []string // names hashed by {salt(a,b;n)}; Name is "salt"
	Buckets string
}

// Template is a parsed template.
type Template []TemplatePart

// String returns the part as it stands in a template.
func (p TemplatePart) String() string {
	switch {
	case p.Name == "":
		return strings.NewReplacer("{", "{{", "}", "}}").Replace(p.Literal)
	case p.Salt != nil:
		return "{salt(" + strings.Join(p.Salt, ",") + ";" + p.Buckets + ")}"
	}
	s := "{" + p.Name
	for _, f := range p.Filters {
		s += "|" + f.Name
		if len(f.Args) > 0 {
			s += "(" + strings.Join(f.Args, ",") + ")"
		}
	}
	return s + "}"
}

// ParseTemplate reads literal text with {name}, {name|filter|filter(args)} and {salt(a,b;n)}; {{
// and }} stand for braces.
func ParseTemplate(s string) (Template, error) {
	var out Template
	err := split(s, func(literal string) {
		out = append(out, TemplatePart{Literal: literal})
	}, func(inside string) error {
		part, err := parseReference(inside)
		out = append(out, part)
		return err
	})
	return out, err
}

// parseReference reads the inside of {name|filter(args)} or {salt(names;n)}.
func parseReference(inside string) (TemplatePart, error) {
	if args, ok := strings.CutPrefix(inside, "salt("); ok {
		return parseSalt(inside, args)
	}
	steps := strings.Split(inside, "|")
	part := TemplatePart{Name: steps[0]}
	switch {
	case strings.Contains(part.Name, "("):
		return part, fmt.Errorf("{%s}: the only function is salt(names;buckets); a random salt is not possible: an "+
			"update could not find its row again", inside)
	}
	if err := checkName(inside, part.Name); err != nil {
		return part, err
	}
	for _, step := range steps[1:] {
		f := Filter{Name: step}
		if name, args, ok := strings.Cut(step, "("); ok {
			args, closed := strings.CutSuffix(args, ")")
			if !closed {
				return part, fmt.Errorf("{%s}: filter %q has no closing parenthesis", inside, name)
			}
			f.Name = name
			for _, a := range strings.Split(args, ",") {
				f.Args = append(f.Args, strings.TrimSpace(a))
			}
		}
		part.Filters = append(part.Filters, f)
	}
	return part, nil
}

// checkName refuses references that are unlikely to name a capture or an attribute. Attributes may
// have almost any name, so syntax that belongs in a pattern would otherwise be read as an attribute
// that no item has.
func checkName(inside, name string) error {
	capture, _, typed := strings.Cut(name, ":")
	switch {
	case name == "":
		return fmt.Errorf("{%s}: a name is missing", inside)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("{%s}: write {%s} without spaces around the name", inside, strings.TrimSpace(inside))
	case strings.HasPrefix(name, "="):
		return fmt.Errorf("{%s}: a back-reference belongs in `match`; here write {%s}", inside, name[1:])
	case typed && !strings.HasPrefix(name, "aws:"):
		return fmt.Errorf("{%s}: a capture's kind belongs in `match`; here write {%s}", inside, capture)
	case strings.ContainsAny(name, "=\"'`*?<>[]\\") || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("{%s}: this is the name of neither a capture nor an attribute; braces as text are written "+
			"{{ and }}", inside)
	}
	return nil
}

// parseSalt reads the arguments of salt.
func parseSalt(inside, args string) (TemplatePart, error) {
	part := TemplatePart{Name: "salt"}
	args, closed := strings.CutSuffix(args, ")")
	names, n, counted := strings.Cut(args, ";")
	if !closed || !counted || names == "" {
		return part, fmt.Errorf("{%s}: a salt names what it is made of and the number of buckets: "+
			"{salt(tenant,id;8)}", inside)
	}
	for _, name := range strings.Split(names, ",") {
		name = strings.TrimSpace(name)
		if err := checkName(inside, name); err != nil {
			return part, err
		}
		part.Salt = append(part.Salt, name)
	}
	part.Buckets = strings.TrimSpace(n)
	return part, nil
}
