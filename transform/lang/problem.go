// Package lang is the syntax of the mapping language: the strict YAML reader that reports every problem
// at once with its line, the model of a mapping file, and the parsers of patterns and templates. It knows
// nothing of rows or changes; package transform compiles what this package has read.
package lang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severities of a Problem.
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// Problem is one thing that a mapping's author should know: where it is, what is wrong, what to do.
type Problem struct {
	Severity string `json:"severity"`        // "error" or "warning"
	Code     string `json:"code"`            // stable, for scripts
	File     string `json:"file,omitempty"`  // mapping file as the configuration names it
	Path     string `json:"path"`            // inside the file, such as rules[1].cells[0].to
	Line     int    `json:"line,omitempty"`  // 1-based; 0 = not from a file
	Table    string `json:"table,omitempty"` // source table
	What     string `json:"what"`
	Hint     string `json:"hint,omitempty"`
}

// String is the problem as people read it.
func (p Problem) String() string {
	at := p.File
	if at == "" {
		at = p.Table
	}
	path := p.Path
	if path != "" {
		path += ": "
	}
	s := fmt.Sprintf("%s:%d: %s: %s%s [%s]", at, p.Line, p.Severity, path, p.What, p.Code)
	if p.Hint != "" {
		s += "\n    hint: " + p.Hint
	}
	return s
}

// Text is a scalar of the file with the place where it stands.
type Text struct {
	S    string
	Line int
	Path string
}

// MarshalText writes the scalar without its place, so that a mapping's JSON is its content.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.S), nil }

// Set says whether the author wrote the scalar at all.
func (t Text) Set() bool { return t.Line > 0 || t.S != "" }

// Problems collects what is wrong with one file.
type Problems struct {
	File  string
	Table string
	List  []Problem
}

// Errorf adds an error at a place.
func (ps *Problems) Errorf(at Text, code, hint, format string, args ...any) {
	ps.add(SeverityError, at, code, hint, fmt.Sprintf(format, args...))
}

// Warnf adds a warning at a place.
func (ps *Problems) Warnf(at Text, code, hint, format string, args ...any) {
	ps.add(SeverityWarning, at, code, hint, fmt.Sprintf(format, args...))
}

func (ps *Problems) add(severity string, at Text, code, hint, what string) {
	ps.List = append(ps.List, Problem{Severity: severity, Code: code, File: ps.File, Table: ps.Table,
		Path: at.Path, Line: at.Line, What: what, Hint: hint})
}

// Failed says whether an error is among the problems.
func (ps *Problems) Failed() bool { return Failed(ps.List) }

// Failed says whether an error is among the problems.
func Failed(list []Problem) bool {
	return slices.ContainsFunc(list, func(p Problem) bool { return p.Severity == SeverityError })
}

// Sort orders problems by file and line, errors first within a line.
func Sort(list []Problem) {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Severity, b.Severity))
	})
}

// Nearest returns the known word that a mistyped one most likely means, or "".
func Nearest(word string, known []string) string {
	best, at := "", 3
	for _, k := range known {
		if k != word && strings.EqualFold(k, word) {
			return k
		}
		if d := distance(word, k); d < at && d < len(k) {
			best, at = k, d
		}
	}
	return best
}

// Mistyped is Nearest for words that may well be meant as they stand: it wants two of three letters to be right.
func Mistyped(word string, known []string) string {
	if near := Nearest(word, known); near != word && (strings.EqualFold(near, word) || 3*distance(near, word) <= len(word)) {
		return near
	}
	return ""
}

// distance is Levenshtein's edit distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
