package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	// widestComment is the width of a line of a comment in columns, a tab counting four: two of them
	// stand side by side in a review.
	widestComment = 100
	// wideShare is how many of 1,000 lines of comments may be wider: URLs, tables and lists are.
	wideShare = 20
)

// indirect are words that make a comment hard to read, with how often each kind may stand in 10,000
// words of comments. Some are right: a person knows, and an operator wants.
var indirect = []struct {
	what    string
	words   *regexp.Regexp
	allowed float64
}{
	{"components that say, know, hear, see or want: name what they print, hold, receive, find or need",
		regexp.MustCompile(`(?i)\b(?:says|knows|tells|hears|heard|sees|saw|believes|thinks|wants|asks|learns|forgets|` +
			`notices)\b`), 4},
	{"people who are none: name the actor",
		regexp.MustCompile(`(?i)\b(?:somebody|nobody|whoever|anybody|who|whom|whose)\b`), 2},
	{"those of, that of: repeat the noun", regexp.MustCompile(`(?i)\b(?:that|those|the one|the ones) of\b`), 1},
}

var word = regexp.MustCompile(`\b[\w'-]+\b`)

// TestCommentsArePlain: comments are as narrow and as direct as those of the projects that this one
// takes for its example.
func TestCommentsArePlain(t *testing.T) {
	lines, wide, words := 0, 0, 0
	found := make([][]string, len(indirect))
	eachComment(t, func(place, line string) {
		lines++
		if len([]rune(strings.ReplaceAll(line, "\t", "    "))) > widestComment {
			wide++
		}
		text := strings.TrimSpace(line)
		words += len(word.FindAllString(text, -1))
		for i := range indirect {
			if indirect[i].words.MatchString(text) {
				found[i] = append(found[i], place+": "+text)
			}
		}
	})
	if words == 0 {
		t.Fatal("no comment was found")
	}
	t.Logf("%d of %d lines of comments are wider than %d columns", wide, lines, widestComment)
	if 1000*wide > wideShare*lines {
		t.Errorf("%d of %d lines of comments are wider than %d columns", wide, lines, widestComment)
	}
	for i, kind := range indirect {
		share := 10_000 * float64(len(found[i])) / float64(words)
		t.Logf("%.1f in 10,000 words: %s", share, kind.what)
		if share > kind.allowed {
			t.Errorf("%.1f in 10,000 words, at most %.0f are allowed: %s\n%s", share, kind.allowed, kind.what,
				strings.Join(found[i], "\n"))
		}
	}
}

// eachComment calls f with each line of a comment in the Go files of this module that are no tests.
func eachComment(t *testing.T, f func(place, line string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "tools" ||
			strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			line = strings.TrimRight(line, "\n")
			if text := strings.TrimSpace(line); strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "//go:") {
				f(filepath.ToSlash(strings.TrimPrefix(path, "../")), line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
