package test

import (
	"regexp"
	"testing"
)

var (
	// formatRow is a row of the table of formats: number, file.
	formatRow = regexp.MustCompile("(?m)^\\| .* \\| .* \\| (\\d+) \\| `([\\w/.]+\\.go)` \\|$")
	// formatNumber is where a file has its number: a constant, or the word that a mapping has to
	// say.
	formatNumber = regexp.MustCompile(`(?m)^(?:const |\t)\w*(?:[Ff]ormat|FormatNumber|Version|Schema)\s*= (\d+)|` +
		`Word\(&version, "(\d+)"\)`)
)

// TestVersioningNamesTheFormats: docs/versioning.md has the numbers that the code has.
func TestVersioningNamesTheFormats(t *testing.T) {
	rows := formatRow.FindAllStringSubmatch(read(t, "../docs/versioning.md"), -1)
	if len(rows) < 12 {
		t.Fatalf("only %d formats are listed", len(rows))
	}
	for _, row := range rows {
		found := formatNumber.FindStringSubmatch(read(t, "../"+row[2]))
		if found == nil {
			t.Errorf("%s has no format number", row[2])
		} else if number := found[1] + found[2]; number != row[1] {
			t.Errorf("docs/versioning.md says %s for %s, which has %s", row[1], row[2], number)
		}
	}
}
