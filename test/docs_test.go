package test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// ruleMark is what a comment begins with where it marks the place that enforces a rule, or what
	// it consists of at the end of a line.
	ruleMark   = regexp.MustCompile(`(?m)//.*\bRules? \d+(?:(?:,| and)? (?:Rule )?\d+)*(?::|$)`)
	ruleNumber = regexp.MustCompile(`\bRules? (\d+(?:(?:,| and)? (?:Rule )?\d+)*)`)
	number     = regexp.MustCompile(`\d+`)
	ruleRow    = regexp.MustCompile(`(?m)^\| (\d+) \| (.+) \| (.+) \|$`)
	ruleTitle  = regexp.MustCompile(`(?m)^## Rule (\d+)\n\n`)
	codeSpan   = regexp.MustCompile("`([^`]+)`")
)

// rule is what docs/rules.md has of a rule.
type rule struct {
	sentence string
	marks    []string // files with a mark
	tests    []string // package directory, dot, test function
}

// rulesOfPage reads docs/rules.md. In a list of files, one without a directory lies in the directory
// of the file before it.
func rulesOfPage(t *testing.T) map[int]rule {
	t.Helper()
	page := read(t, "../docs/rules.md")
	rules := map[int]rule{}
	titles := ruleTitle.FindAllStringSubmatchIndex(page, -1)
	for i, at := range titles {
		end := len(page)
		if i+1 < len(titles) {
			end = titles[i+1][0]
		}
		n, _ := strconv.Atoi(page[at[2]:at[3]])
		sentence, lists, _ := strings.Cut(page[at[1]:end], "\n\nMarks:\n\n")
		marks, tests, found := strings.Cut(lists, "\n\nTests:\n\n")
		if !found {
			t.Fatalf("docs/rules.md: Rule %d has no marks or no tests", n)
		}
		r := rule{sentence: strings.Join(strings.Fields(sentence), " ")}
		dir := ""
		for _, m := range codeSpan.FindAllStringSubmatch(marks, -1) {
			if strings.Contains(m[1], "/") {
				dir = path.Dir(m[1])
			}
			r.marks = append(r.marks, path.Join(dir, path.Base(m[1])))
		}
		for item := range strings.SplitSeq(tests, "\n- ") {
			in := codeSpan.FindStringSubmatch(item)
			for _, name := range docTest.FindAllString(item, -1) {
				r.tests = append(r.tests, in[1]+"."+name)
			}
		}
		rules[n] = r
	}
	return rules
}

// marked returns the rules of which a text has marks.
func marked(text string) map[int]bool {
	found := map[int]bool{}
	for _, line := range ruleMark.FindAllString(text, -1) {
		for _, m := range ruleNumber.FindAllString(line, -1) {
			for _, digits := range number.FindAllString(m, -1) {
				n, _ := strconv.Atoi(digits)
				found[n] = true
			}
		}
	}
	return found
}

// TestRulesHaveTheirMarks compares the marks in the code with docs/rules.md, in both directions, and
// that page with the rules in ARCHITECTURE.md.
func TestRulesHaveTheirMarks(t *testing.T) {
	rules, known := rulesOfPage(t), testFunctions(t)
	for _, r := range rooms(t) {
		dir := strings.TrimPrefix(r.ImportPath, module)
		if under(dir, []string{"sandbox", "test"}) {
			continue
		}
		for _, f := range append(r.GoFiles, r.IgnoredGoFiles...) {
			if f == "doc.go" || strings.HasSuffix(f, "_test.go") {
				continue
			}
			for n := range marked(read(t, filepath.Join(r.Dir, f))) {
				if file := path.Join(dir, f); !slices.Contains(rules[n].marks, file) {
					t.Errorf("%s has a mark of Rule %d: docs/rules.md does not list it", file, n)
				}
			}
		}
	}
	for n, r := range rules {
		for _, file := range r.marks {
			text, err := os.ReadFile(filepath.Join("..", file))
			if err != nil || !slices.ContainsFunc(ruleNumber.FindAllString(string(text), -1), func(m string) bool {
				return slices.Contains(number.FindAllString(m, -1), strconv.Itoa(n))
			}) {
				t.Errorf("docs/rules.md lists %s, which has no mark of Rule %d", file, n)
			}
		}
		for _, name := range r.tests {
			if !known[name] {
				t.Errorf("docs/rules.md, Rule %d: there is no %s", n, name)
			}
		}
		if len(r.marks) == 0 || len(r.tests) == 0 {
			t.Errorf("docs/rules.md: Rule %d has %d marks and %d tests", n, len(r.marks), len(r.tests))
		}
	}
	_, text, _ := strings.Cut(read(t, "../ARCHITECTURE.md"), "\n## The rules\n")
	text, _, _ = strings.Cut(text, "\n## ")
	rows := ruleRow.FindAllStringSubmatch(text, -1)
	if len(rows) != len(rules) {
		t.Errorf("ARCHITECTURE.md has %d rules, docs/rules.md has %d", len(rows), len(rules))
	}
	for _, row := range rows {
		n, _ := strconv.Atoi(row[1])
		if row[2] != rules[n].sentence {
			t.Errorf("Rule %d in ARCHITECTURE.md:\n\t%s\nin docs/rules.md:\n\t%s", n, row[2], rules[n].sentence)
		}
		for _, m := range codeSpan.FindAllStringSubmatch(row[3], -1) {
			if !slices.Contains(rules[n].marks, m[1]) {
				t.Errorf("ARCHITECTURE.md names %s for Rule %d, docs/rules.md does not", m[1], n)
			}
		}
	}
}
