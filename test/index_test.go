package test

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

var indexLine = regexp.MustCompile(`(?m)^- \[([^\]]+)\]\(([\w./-]+)\): (.+)$`)

// TestIndexHasEveryPage: docs/README.md lists each page, and each once. Decisions have an index of
// their own.
func TestIndexHasEveryPage(t *testing.T) {
	listed := map[string]int{}
	for _, m := range indexLine.FindAllStringSubmatch(read(t, "../docs/README.md"), -1) {
		listed["docs/"+m[2]]++
	}
	for _, doc := range documents(t) {
		switch dir := path.Dir(doc); {
		case doc == "docs/README.md" || !strings.HasPrefix(doc, "docs/"):
		case dir == "docs/decisions" && path.Base(doc) != "README.md":
			if !strings.Contains(read(t, "../docs/decisions/README.md"), "]("+path.Base(doc)+")") {
				t.Errorf("docs/decisions/README.md has no %s", doc)
			}
		case listed[doc] != 1:
			t.Errorf("docs/README.md lists %s %d times", doc, listed[doc])
		}
	}
}

// TestIndexForModels: llms.txt is docs/README.md with links that lead to the text of the pages.
// https://llmstxt.org says what it is for.
func TestIndexForModels(t *testing.T) {
	const raw = "https://raw.githubusercontent.com/tailrace-cdc/replicator/main/docs/"
	title, rest, _ := strings.Cut(read(t, "../docs/README.md"), "\n\n")
	summary, list, _ := strings.Cut(rest, "\n\n")
	summary = "> " + strings.ReplaceAll(summary, "\n", "\n> ")
	list = indexLine.ReplaceAllString(list, "- [$1]("+raw+"$2): $3")
	same(t, "../llms.txt", []byte(title+"\n\n"+summary+"\n\n"+list))
}
