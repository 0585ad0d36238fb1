package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration, said so that the author can mend it without reading code.
type Problem struct {
	Severity string `json:"severity"`       // "error": nothing starts; "warning": it starts, and somebody should look
	Code     string `json:"code"`           // stable, for scripts: unknown_key, missing, bad_value, ...
	File     string `json:"file,omitempty"` // the mapping file, where it is about one; else the configuration
	Path     string `json:"path"`           // where in the file: tables[0].source
	Line     int    `json:"line"`           // from 1; 0 when the file says nothing about it
	What     string `json:"what"`
	Hint     string `json:"hint"`
}

// String is one line for a terminal.
func (p Problem) String() string {
	s := p.Severity + ": "
	if p.Line > 0 {
		s += fmt.Sprintf("line %d: ", p.Line)
	}
	if p.Path != "" {
		s += p.Path + ": "
	}
	return s + p.What
}

// Refused reports whether any problem is an error.
func Refused(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == "error" })
}

// report collects problems and knows where in the file each path stands.
type report struct {
	where    places
	problems []Problem
}

func (r *report) fault(code, path, hint, what string, args ...any) {
	r.add("error", code, path, hint, what, args...)
}

func (r *report) warn(code, path, hint, what string, args ...any) {
	r.add("warning", code, path, hint, what, args...)
}

func (r *report) add(severity, code, path, hint, what string, args ...any) {
	r.problems = append(r.problems, Problem{
		Severity: severity, Code: code, Path: path, Line: r.where.line(path), What: fmt.Sprintf(what, args...), Hint: hint,
	})
}

// sorted returns the problems in the order of the file.
func (r *report) sorted() []Problem {
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return r.problems
}

// knownKeys lists the keys that the file may have at path, or nil if path is not a block of ours.
func knownKeys(path string) []string {
	t := reflect.TypeFor[Config]()
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' }) {
		if strings.HasSuffix(part, "]") {
			if t.Kind() != reflect.Slice {
				return nil
			}
			t = t.Elem()
			continue
		}
		f, ok := fieldByKey(t, part)
		if !ok {
			return nil
		}
		t = f.Type
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for f := range fields(t) {
		if key := f.Tag.Get("yaml"); key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

func fieldByKey(t reflect.Type, key string) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	for f := range fields(t) {
		if f.Tag.Get("yaml") == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// nearest returns the known word closest to what was written, or "" if none is close.
func nearest(written string, known []string) string {
	best, bestAt := "", max(2, len(written)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(written), k); d < bestAt {
			best, bestAt = k, d
		}
	}
	return best
}

// distance is Levenshtein's.
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
