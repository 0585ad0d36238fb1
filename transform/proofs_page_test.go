package transform

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	provenInPackage = regexp.MustCompile(`(?m)^//\t(\d+)  (.+?) {2,}(prove\w+)  +(Test\w+)$`)
	provenOnPage    = regexp.MustCompile("(?m)^\\| (\\d+) \\| (.+?) \\| .+ \\| `(prove\\w+)` \\|$")
	proofComment    = regexp.MustCompile(`// Proof (\d+)\b`)
)

// TestProofsOnThePageAreThoseOfThePackage compares the numbers, obligations and functions in
// docs/mapping/proofs.md with the package comment of transform/prove, and looks for a comment with
// each number.
func TestProofsOnThePageAreThoseOfThePackage(t *testing.T) {
	list := func(file string, row *regexp.Regexp) (rows []string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range row.FindAllStringSubmatch(string(text), -1) {
			rows = append(rows, strings.Join(m[1:4], " | "))
		}
		return rows
	}
	inPackage := list("prove/doc.go", provenInPackage)
	if d := cmp.Diff(inPackage, list("../docs/mapping/proofs.md", provenOnPage)); d != "" || len(inPackage) < 9 {
		t.Errorf("%d proofs in the package (-package +page):\n%s", len(inPackage), d)
	}
	files, err := filepath.Glob("prove/*.go")
	if err != nil {
		t.Fatal(err)
	}
	marked := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range proofComment.FindAllStringSubmatch(string(text), -1) {
			marked[m[1]] = true
		}
	}
	for _, row := range inPackage {
		if n, _, _ := strings.Cut(row, " "); !marked[n] {
			t.Errorf("no comment // Proof %s in transform/prove", n)
		}
	}
}
