package object

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Column is a configured column: an attribute of the item with a type of its own.
type Column struct {
	Name string   `json:"name"`
	Path []string `json:"path"` // names of the attribute and of the members of maps below it
	Type Type     `json:"type"`
}

// Type of a configured column: one of the types below, or decimal(p,s).
type Type string

// The types without parameters.
const (
	String          Type = "string"
	Int64           Type = "int64"
	Double          Type = "double"
	Bool            Type = "bool"
	TimestampSecond Type = "timestamp_s"
	TimestampMilli  Type = "timestamp_ms"
	JSON            Type = "json"
)

var plainTypes = []Type{String, Int64, Double, Bool, TimestampSecond, TimestampMilli, JSON}

var decimals = regexp.MustCompile(`^decimal\((\d{1,2}), ?(\d{1,2})\)$`)

// Decimal returns precision and scale of decimal(p,s), and false for other types.
func (t Type) Decimal() (precision, scale int, ok bool) {
	m := decimals.FindStringSubmatch(string(t))
	if m == nil {
		return 0, 0, false
	}
	precision, _ = strconv.Atoi(m[1])
	scale, _ = strconv.Atoi(m[2])
	return precision, scale, true
}

// ParsePath splits a path in its short form at the dots.
func ParsePath(s string) []string { return strings.Split(s, ".") }

// own are the names of the columns that every object has, and of the partitions.
var own = []string{
	"id", "deleted_at", "source", "stream", "shard", "sequence", "version", "keys", "item", "expires", "_misfits",
	"tr_table", "tr_class", "tr_dt", "tr_hr",
}

// ColumnError is a column that cannot be made.
type ColumnError struct {
	Column string // its name
	Field  string // name, path or type
	What   string
	Hint   string
}

func (e *ColumnError) Error() string {
	return fmt.Sprintf("column %q: %s: %s", e.Column, e.Field, e.What)
}

// usable are the names that every reader takes without folding their case or replacing a character.
var usable = regexp.MustCompile(`^[a-z][a-z0-9_]{0,127}$`)

// ValidateColumns returns all that is wrong with the columns.
func ValidateColumns(columns []Column) (problems []*ColumnError) {
	seen := map[string]bool{}
	for _, c := range columns {
		add := func(field, what, hint string) {
			problems = append(problems, &ColumnError{Column: c.Name, Field: field, What: what, Hint: hint})
		}
		switch {
		case slices.Contains(own, c.Name):
			add("name", "every object has a column or partition of this name", "choose another name")
		case strings.HasPrefix(c.Name, "tr_"):
			add("name", "names with tr_ are kept for partitions", "choose another name")
		case !usable.MatchString(c.Name):
			add("name", "not a name that every reader takes",
				"lower-case letters, digits and underscores, at most 128, first a letter; the attribute's name belongs in path")
		case seen[c.Name]:
			add("name", "named twice", "choose another name")
		}
		seen[c.Name] = true
		switch {
		case len(c.Path) == 0:
			add("path", "no attribute", "name the attribute, as in address.city")
		case c.Path[0] == "":
			add("path", "the first name is empty, and no attribute has an empty name", "name the attribute")
		case len(c.Path) > maxPath:
			add("path", fmt.Sprintf("%d names; DynamoDB nests up to %d levels", len(c.Path), maxPath), "shorten it")
		}
		if what := c.Type.problem(); what != "" {
			add("type", what, "string, int64, double, bool, timestamp_s, timestamp_ms, json, or decimal(38,10)")
		}
	}
	return problems
}

// maxPath is an attribute and 32 levels below it.
const maxPath = 33

func (t Type) problem() string {
	if slices.Contains(plainTypes, t) {
		return ""
	}
	p, s, ok := t.Decimal()
	switch {
	case !ok:
		return fmt.Sprintf("unknown type %q", string(t))
	case p < 1 || p > 38:
		return fmt.Sprintf("precision %d is not within 1 to 38", p)
	case s > p:
		return fmt.Sprintf("scale %d is above the precision %d", s, p)
	}
	return ""
}

// sorted returns the columns in the order in which objects hold them.
func sorted(columns []Column) []Column {
	return slices.SortedFunc(slices.Values(columns), func(a, b Column) int { return cmp.Compare(a.Name, b.Name) })
}
