package lang

import "github.com/tailrace-cdc/replicator/problem"

// The problems of mappings are package problem's; these names are for the packages of the compiler.
type (
	Problem  = problem.Problem
	Problems = problem.Collector
	Text     = problem.Text
)

// Severities of a Problem.
const (
	SeverityError   = problem.SeverityError
	SeverityWarning = problem.SeverityWarning
)

// Failed reports whether an error is among the problems.
func Failed(list []Problem) bool { return problem.AnyError(list) }

// Sort orders problems by file and line, errors first within a line.
func Sort(list []Problem) { problem.Sort(list) }

// Nearest returns the known word that an unknown one most likely means, or "".
func Nearest(word string, known []string) string { return problem.Nearest(word, known) }

// Mistyped returns the known word that a word is probably a misspelling of, or "".
func Mistyped(word string, known []string) string { return problem.Mistyped(word, known) }
