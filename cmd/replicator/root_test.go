package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
)

// TestEachCommandHasAGroup: the help shows each command in the group of what it is used for, and
// each name of a group is a command.
func TestEachCommandHasAGroup(t *testing.T) {
	var named, got []string
	for _, g := range groups {
		named = append(named, strings.Fields(g.commands)...)
	}
	for _, cmd := range (&app{&cli.App{}}).root().Commands() {
		if cmd.GroupID == "" && !cmd.Hidden {
			t.Errorf("%s has no group", cmd.Name())
		}
		if !cmd.Hidden {
			got = append(got, cmd.Name())
		}
	}
	if !slices.Equal(named, got) {
		t.Errorf("the groups name %q, and the commands are %q", named, got)
	}
}

// TestJSONBesideAnotherFormatIsRefused: one of the two would be ignored.
func TestJSONBesideAnotherFormatIsRefused(t *testing.T) {
	for line, refused := range map[string]bool{
		"schema --json --format markdown":  true,
		"schema --json --format terraform": true,
		"schema --json --format json":      false,
		"check --json --format text":       true,
		"check --json --format markdown":   true,
		"check --json":                     false,
	} {
		var out, errs strings.Builder
		code := execute(t.Context(), append(strings.Fields(line), "-c", "no such file"), &out, &errs)
		if got := strings.Contains(errs.String(), "exclude each other"); got != refused || code != 2 {
			t.Errorf("%s: exit %d: %s", line, code, &errs)
		}
	}
}
