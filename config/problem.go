package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/problem"
)

// Problem is one thing that is wrong with a configuration.
type Problem = problem.Problem

// Refused reports whether any problem is an error.
func Refused(problems []Problem) bool { return problem.AnyError(problems) }

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
