package tmpl

import "fmt"

// Refusal is the error of an item that the mapping cannot map: its change becomes a dead letter.
type Refusal struct {
	Code string // stable, for metrics and scripts
	What string // for people; names attributes, never prints values
}

// Error returns the reason and the code.
func (r *Refusal) Error() string { return r.What + " [" + r.Code + "]" }

// Refuse returns a Refusal.
func Refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, What: fmt.Sprintf(format, args...)}
}

// MissingError is the error of a template that needs an attribute that the item lacks.
type MissingError struct{ Name string }

// Error names the attribute.
func (e *MissingError) Error() string { return fmt.Sprintf("attribute %q is missing", e.Name) }
