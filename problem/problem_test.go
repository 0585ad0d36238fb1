package problem

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReportsAreTheSameForEveryFile pins the three forms of a problem: for editors, for a terminal,
// for scripts.
func TestReportsAreTheSameForEveryFile(t *testing.T) {
	list := []Problem{
		{Severity: SeverityWarning, Code: "memory", Path: "memory.total", What: "the machine has less"},
		{Severity: SeverityError, Code: "unknown_key", File: "m.yaml", Path: "rules[0].rwo", Line: 3,
			What: `unknown key "rwo"`,
			Hint: "did you mean `row`?"},
	}
	var sb strings.Builder
	Print(&sb, list, "tailrace.yaml")
	want := `tailrace.yaml: warning: memory.total: the machine has less [memory]
    docs/mapping/messages.md#memory
m.yaml:3: error: rules[0].rwo: unknown key "rwo" [unknown_key]
` + "    hint: did you mean `row`?" + `
    docs/mapping/messages.md#unknown_key
`
	if d := cmp.Diff(want, sb.String()); d != "" {
		t.Error(d)
	}
	if got, want := Join(list), `error: line 3: rules[0].rwo: unknown key "rwo"`; got != want {
		t.Errorf("joined: %q, want %q", got, want)
	}
	text, err := json.Marshal(list[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(text),
		`{"severity":"warning","code":"memory","path":"memory.total","line":0,"what":"the machine has less","hint":"",`+
			`"doc":"docs/mapping/messages.md#memory"}`; got != want {
		t.Errorf("JSON: %s, want %s", got, want)
	}
	var back Problem
	if err := json.Unmarshal(text, &back); err != nil || back != list[0] {
		t.Errorf("read back: %+v, %v", back, err)
	}
}

func TestErrorsComeFirstWithinALine(t *testing.T) {
	list := []Problem{
		{Severity: SeverityWarning, Code: "c", File: "a.yaml", Line: 2},
		{Severity: SeverityError, Code: "d", File: "a.yaml", Line: 2},
		{Severity: SeverityWarning, Code: "b", File: "a.yaml", Line: 1}, {Severity: SeverityWarning, Code: "a", Line: 7},
	}
	Sort(list)
	var order string
	for _, p := range list {
		order += p.Code
	}
	if order != "abdc" {
		t.Errorf("order %s", order)
	}
	if !AnyError(list) || CountErrors(list) != 1 || AnyError(list[:2]) {
		t.Error("one error is among the problems")
	}
}

func TestNearestWord(t *testing.T) {
	for _, c := range []struct {
		word              string
		known             []string
		nearest, mistyped string
	}{
		{"taget", []string{"source", "target"}, "target", "target"},
		{"TARGET", []string{"target"}, "target", "target"},
		{"userId", []string{"userid"}, "userid", "userid"},
		// two edits would replace the whole word
		{"id", []string{"at", "pk"}, "", ""},
		{"pkk", []string{"pk"}, "pk", "pk"},                     // one of three letters
		{"nme", []string{"name", "none"}, "name", "name"},       // the closer one
		{"stat", []string{"start", "states"}, "start", "start"}, // one of four
		// two of four: perhaps meant as it stands
		{"form", []string{"from"}, "from", ""},
		{"strip_globl_tabel", []string{"strip_global_table"}, "strip_global_table", ""}, // three edits: never for a warning
		{"whatever", []string{"row", "cells"}, "", ""},
	} {
		if got := Nearest(c.word, c.known); got != c.nearest {
			t.Errorf("Nearest(%q, %q) = %q, want %q", c.word, c.known, got, c.nearest)
		}
		if got := Mistyped(c.word, c.known); got != c.mistyped {
			t.Errorf("Mistyped(%q, %q) = %q, want %q", c.word, c.known, got, c.mistyped)
		}
	}
}
