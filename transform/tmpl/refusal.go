package tmpl

import "fmt"

// Refusal says that a mapping will not take an item, and why: the change becomes a dead letter.
type Refusal struct {
	Code string // stable, for metrics and scripts
	What string // for people; names attributes, never prints values
}

func (r *Refusal) Error() string { return r.What + " [" + r.Code + "]" }

// Refuse makes a Refusal.
func Refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, What: fmt.Sprintf(format, args...)}
}

// MissingError says that a template needs an attribute that the item does not have.
type MissingError struct{ Name string }

func (e *MissingError) Error() string { return fmt.Sprintf("attribute %q is missing", e.Name) }
