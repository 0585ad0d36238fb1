package transform

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/problem"
)

var update = flag.Bool("update", false, "write the files that the tests compare with")

// TestWrongMappingsSayWhatToDo keeps the messages of wrong mapping files as a new user sees them. With
// -update it writes them.
func TestWrongMappingsSayWhatToDo(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d wrong mapping files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := messages(t, file)
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if got == "" {
				t.Error("a wrong mapping gave no message")
			}
		})
	}
}

func messages(t *testing.T, file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	keys := schema("pk:S", "sk:S")
	if head, found := strings.CutPrefix(string(data), "# keys: "); found {
		line, _, _ := strings.Cut(head, "\n")
		names := strings.Fields(line)
		keys = schema(names[0], names[1:]...)
	}
	m, problems := ParseMapping(filepath.Base(file), data)
	if !problem.AnyError(problems) {
		_, more := Compile(Table{Pipeline: "p", Source: "T", Target: "t", Schema: keys, Mapping: m})
		problems = append(problems, more...)
	}
	var sb strings.Builder
	for _, p := range problems {
		sb.WriteString(p.Report("") + "\n")
	}
	return sb.String()
}
