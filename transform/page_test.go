package transform

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

var (
	saidCode = regexp.MustCompile(`(?m)^\S+:\d+: (?:error|warning): .* \[(\w+)\]$`)
	knownKey = regexp.MustCompile(`known here: ([a-z_, ]+)`)
	oneOf    = regexp.MustCompile(`hint: (?:one of: )?([a-zA-Z0-9_:<>]+(?:, [a-zA-Z0-9_:<>]+)*(?: or [a-z]+)?)\n`)
	word     = regexp.MustCompile(`\w+`)
	quoted   = regexp.MustCompile("`[^`]+`")
)

// TestEveryCodeAndKeyIsOnThePage: what the compiler says, and what the parser takes, can be looked
// up.
func TestEveryCodeAndKeyIsOnThePage(t *testing.T) {
	marked := map[string]bool{}
	for _, code := range quoted.FindAllString(fences.ReplaceAllString(mappingPages(t), ""), -1) {
		for _, w := range word.FindAllString(code, -1) {
			marked[w] = true
		}
	}
	said := goldens(t, "*")
	words := listed(said, knownKey)
	for _, m := range saidCode.FindAllStringSubmatch(said, -1) {
		words[m[1]] = true
	}
	for w := range words {
		if !marked[w] {
			t.Errorf("%s is not on the page", w)
		}
	}
	if len(words) < 80 {
		t.Errorf("only %d words looked for", len(words))
	}
}

// TestEveryKeyWordAndFilterHasAnExample: every feature of the language is shown by an example that
// runs.
func TestEveryKeyWordAndFilterHasAnExample(t *testing.T) {
	shown := map[string]bool{}
	for _, block := range fences.FindAllStringSubmatch(mappingPages(t), -1) {
		if block[1] == "yaml" && strings.HasPrefix(block[2], "# keys: ") {
			for _, w := range word.FindAllString(block[2], -1) {
				shown[w] = true
			}
		}
	}
	words := listed(goldens(t, "45_*"), knownKey)
	for w := range listed(goldens(t, "4[78]_*"), oneOf) {
		words[w] = true
	}
	for _, f := range tmpl.Filters {
		words[f.Name] = true
	}
	for w := range words {
		// What happens if nothing is said needs no example, nor do DynamoDB's names of types.
		if !shown[w] && !strings.Contains(" natural strict omit delete own N B BOOL NULL SS NS BS L M ", " "+w+" ") {
			t.Errorf("no example shows %s", w)
		}
	}
	if len(words) < 100 {
		t.Errorf("only %d words looked for", len(words))
	}
}

// goldens are the messages of wrong mapping files.
func goldens(t *testing.T, names string) string {
	t.Helper()
	files, err := filepath.Glob("testdata/wrong/" + names + ".txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no messages %s: %v", names, err)
	}
	var sb strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sb.Write(text)
	}
	return sb.String()
}

// listed are the words of lists in messages.
func listed(said string, list *regexp.Regexp) map[string]bool {
	words := map[string]bool{}
	for _, m := range list.FindAllStringSubmatch(said, -1) {
		for _, w := range word.FindAllString(strings.ReplaceAll(m[1], " or ", ", "), -1) {
			words[w] = true
		}
	}
	return words
}
