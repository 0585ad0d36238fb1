package problem

import "fmt"

// Text is a scalar of a file with the place where it stands.
type Text struct {
	S    string
	Line int
	Path string
}

// MarshalText writes the scalar without its place, so that the JSON of a file's model is its
// content.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.S), nil }

// Set reports whether the author wrote the scalar at all.
func (t Text) Set() bool { return t.Line > 0 || t.S != "" }

// Collector collects the problems of one file or one table. The zero Collector is ready to use.
type Collector struct {
	File  string
	Table string
	List  []Problem
}

// Errorf adds an error at a place.
func (c *Collector) Errorf(at Text, code, hint, format string, args ...any) {
	c.add(SeverityError, at, code, hint, fmt.Sprintf(format, args...))
}

// Warnf adds a warning at a place.
func (c *Collector) Warnf(at Text, code, hint, format string, args ...any) {
	c.add(SeverityWarning, at, code, hint, fmt.Sprintf(format, args...))
}

func (c *Collector) add(severity string, at Text, code, hint, what string) {
	c.List = append(c.List, Problem{
		Severity: severity, Code: code, File: c.File, Table: c.Table, Path: at.Path, Line: at.Line, What: what, Hint: hint,
	})
}

// Failed reports whether an error is among the problems.
func (c *Collector) Failed() bool { return AnyError(c.List) }
