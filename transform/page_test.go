package transform

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	saidCode = regexp.MustCompile(`(?m)^\S+:\d+: (?:error|warning): .* \[(\w+)\]$`)
	knownKey = regexp.MustCompile(`known here: ([a-z_, ]+)`)
)

// TestEveryCodeAndKeyIsOnThePage: what the compiler says, and what the parser takes, can be looked up.
func TestEveryCodeAndKeyIsOnThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/mapping.md")
	if err != nil {
		t.Fatal(err)
	}
	marked := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`]+`").FindAllString(fences.ReplaceAllString(string(page), ""), -1) {
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(code, -1) {
			marked[word] = true
		}
	}
	files, err := filepath.Glob("testdata/wrong/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range saidCode.FindAllStringSubmatch(string(text), -1) {
			words[m[1]] = "code"
		}
		for _, m := range knownKey.FindAllStringSubmatch(string(text), -1) {
			for _, key := range strings.Split(m[1], ", ") {
				words[strings.TrimSpace(key)] = "key"
			}
		}
	}
	for word, what := range words {
		if !marked[word] {
			t.Errorf("%s %s is not on the page", what, word)
		}
	}
	if len(words) < 80 {
		t.Errorf("only %d words looked for", len(words))
	}
}
