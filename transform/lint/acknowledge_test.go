package lint

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestEveryWarningCanBeAcknowledged compares the codes of warnings in the compiler's source with
// Warnings: a code that is not listed there could not be acknowledged.
func TestEveryWarningCanBeAcknowledged(t *testing.T) {
	var files []string
	for _, dir := range []string{".", "../compile", "../prove"} {
		found, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(found) == 0 {
			t.Fatalf("%d files in %s: %v", len(found), dir, err)
		}
		files = append(files, found...)
	}
	raised := regexp.MustCompile(`\.Warnf\([^"]+, "(\w+)"`)
	found := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range raised.FindAllStringSubmatch(string(source), -1) {
			found[m[1]] = true
		}
	}
	delete(found, "acknowledged") // about acknowledgements; cannot be acknowledged itself
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, Warnings) {
		t.Errorf("warnings raised: %v, listed: %v", got, Warnings)
	}
}
