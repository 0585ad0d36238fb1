// Package problem is what the replicator reports about the files and tables that it is given: each
// problem with its place, severity and code, what is wrong, and what to do about it.
//
// The configuration, the mapping compiler, the proposals from samples and the commands all report
// problems of this one kind, so they sort, print and count alike. Every code has an entry in
// docs/mapping/messages.md. The subpackage yamlfile reads YAML files strictly and reports what it
// finds here.
package problem

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Severities of a Problem.
const (
	SeverityError   = "error"   // nothing starts
	SeverityWarning = "warning" // it starts, and the author should look
)

// messagesPage has one heading per code.
const messagesPage = "docs/mapping/messages.md"

// Problem is one thing that is wrong, reported so that the author can fix it without reading code.
type Problem struct {
	Severity string `json:"severity"`        // SeverityError or SeverityWarning
	Code     string `json:"code"`            // stable, for scripts: unknown_key, missing, bad_value, ...
	File     string `json:"file,omitempty"`  // the mapping file, if the problem is in one; else the configuration
	Path     string `json:"path"`            // inside the file: tables[0].source, rules[1].cells[0].to
	Line     int    `json:"line"`            // from 1; 0 if the file does not mention it
	Table    string `json:"table,omitempty"` // source table of the mapping
	What     string `json:"what"`
	Hint     string `json:"hint"`
}

// Doc returns the link to the explanation of the problem's code, relative to the root of the
// repository.
func (p Problem) Doc() string { return messagesPage + "#" + p.Code }

// MarshalJSON writes the fields, and the link of Doc as "doc".
func (p Problem) MarshalJSON() ([]byte, error) {
	type fields Problem
	b, err := json.Marshal(struct {
		fields
		Doc string `json:"doc"`
	}{fields(p), p.Doc()})
	if err != nil {
		return nil, fmt.Errorf("write problem: %w", err)
	}
	return b, nil
}

// String returns the problem as one line without file and hint, for an error that joins several.
func (p Problem) String() string {
	s := p.Severity + ": "
	if p.Line > 0 {
		s += fmt.Sprintf("line %d: ", p.Line)
	}
	return s + p.pathAndWhat()
}

// Report returns the problem in the form that editors parse, "file:line: severity: path: what
// [code]", and the hint on a second line. A problem without a file is about defaultFile.
func (p Problem) Report(defaultFile string) string {
	place := cmp.Or(p.File, defaultFile)
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, p.Line)
	}
	s := fmt.Sprintf("%s: %s: %s [%s]", place, p.Severity, p.pathAndWhat(), p.Code)
	if p.Hint != "" {
		s += "\n    hint: " + p.Hint
	}
	return s
}

func (p Problem) pathAndWhat() string {
	if p.Path == "" {
		return p.What
	}
	return p.Path + ": " + p.What
}

// Print writes the reports of all problems, each followed by the link to the explanation of its
// code.
func Print(w io.Writer, list []Problem, defaultFile string) {
	for _, p := range list {
		fmt.Fprintf(w, "%s\n    %s\n", p.Report(defaultFile), p.Doc())
	}
}

// AnyError reports whether an error is among the problems.
func AnyError(list []Problem) bool { return CountErrors(list) > 0 }

// CountErrors returns how many of the problems are errors; the others are warnings.
func CountErrors(list []Problem) int {
	n := 0
	for _, p := range list {
		if p.Severity == SeverityError {
			n++
		}
	}
	return n
}

// Join returns the errors among the problems on one line, without the warnings.
func Join(list []Problem) string {
	var lines []string
	for _, p := range list {
		if p.Severity == SeverityError {
			lines = append(lines, p.String())
		}
	}
	return strings.Join(lines, "; ")
}

// Sort orders problems by file and line, errors first within a line; equal ones keep their order.
func Sort(list []Problem) {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Severity, b.Severity))
	})
}
