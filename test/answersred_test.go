package test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// redStates are what a user may see after an answer, once or for a while, by its call and itself.
// Beside them, a command may always end with exit code 3.
type redStates map[string][]string

// documentedRed reads testdata/answers-red.txt, which lists each red state that an answer may lead
// to.
func documentedRed(t *testing.T) redStates {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "answers-red.txt"))
	if err != nil {
		t.Fatal(err)
	}
	red := redStates{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		fields := strings.Split(line, " | ")
		if len(fields) != 3 {
			t.Fatalf("testdata/answers-red.txt: %q", line)
		}
		red[fields[0]+" | "+fields[1]] = strings.Split(fields[2], ", ")
	}
	return red
}

// lettersUntilRetry is what a user sees of a change that Bigtable has refused for good, twice: it
// answers INVALID_ARGUMENT only to what it will never take.
const lettersUntilRetry = "dead letters until dlq retry --all"

// documents reports whether a user may see something after the answer of a cell.
func (r redStates) documents(c cell, what string) bool {
	// A sink of the archive halts when its store fails for some tries, and tries again.
	store := c.times < 0 && slices.Contains([]string{"s3", "gcs", "azure"}, c.call.side)
	return strings.HasSuffix(what, ": exit 3") || store && what == "halted" ||
		slices.Contains(r[c.call.String()+" | "+string(c.answer)], what)
}

// passing are the states that are no red ones: the work of a start, a copy, a recovery or a
// cutover.
var passing = []string{"starting", "standby", "waiting", "copying", "healing", "recovering", "resyncing", "fenced"}

// allows returns an error if a user saw what no list documents of a cell.
func (r redStates) allows(c cell, saw map[string]bool) error {
	var more []string
	for _, s := range slices.Sorted(maps.Keys(saw)) {
		if !slices.Contains(passing, s) && !r.documents(c, s) {
			more = append(more, s)
		}
	}
	if len(more) > 0 {
		return fmt.Errorf("not documented in testdata/answers-red.txt: %s | %s | %s", c.call, c.answer,
			strings.Join(more, ", "))
	}
	return nil
}
