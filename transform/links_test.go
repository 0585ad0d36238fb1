package transform

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	relativeLink = regexp.MustCompile(`\]\(([\w./-]*)(#[\w-]+)?\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor  = regexp.MustCompile(`[^\w\- ]`)
)

// TestLinksOnThePagesLeadSomewhere follows the links between the pages under docs/mapping, and to
// other files.
func TestLinksOnThePagesLeadSomewhere(t *testing.T) {
	files, err := filepath.Glob("../docs/mapping/*.md")
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range relativeLink.FindAllStringSubmatch(fences.ReplaceAllString(string(text), ""), -1) {
			target := file
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(file), m[1])
			}
			page, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(file), m[1], err)
			} else if m[2] != "" && !anchors(string(page))[m[2]] {
				t.Errorf("%s links to %s%s, which has no such heading", filepath.Base(file), m[1], m[2])
			}
			followed++
		}
	}
	if followed < 200 {
		t.Errorf("only %d links found", followed)
	}
}

// anchors returns the anchors of a page's headings.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		words := notInAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		found["#"+strings.ReplaceAll(words, " ", "-")] = true
	}
	return found
}
