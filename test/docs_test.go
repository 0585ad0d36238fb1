package test

import (
	"io/fs"
	"maps"
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

// TestMapOfPackagesIsComplete holds the map in ARCHITECTURE.md to the packages: each room stands
// above all rooms that it imports, and names each package below it. The tests stand last, and import
// what they like.
func TestMapOfPackagesIsComplete(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "../ARCHITECTURE.md"), "\n## Packages\n")
	_, text, _ = strings.Cut(text, "\n```\n")
	text, _, _ = strings.Cut(text, "```")
	place, names := map[string]int{}, map[string]map[string]bool{}
	at := ""
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			at, _, _ = strings.Cut(strings.Fields(line)[0], "/")
			if _, twice := place[at]; !twice {
				place[at], names[at] = len(place), map[string]bool{}
			}
		}
		for _, w := range word.FindAllString(line, -1) {
			names[at][w] = true
		}
	}
	for room := range place {
		if _, ok := arrows[room]; !ok {
			t.Errorf("ARCHITECTURE.md has the room %s, which does not exist", room)
		}
	}
	for room, imported := range arrows {
		if _, ok := place[room]; !ok {
			t.Errorf("ARCHITECTURE.md has no room %s", room)
		}
		for _, other := range imported {
			if other != room && room != "test" && place[other] <= place[room] {
				t.Errorf("%s may import %s, which stands above it in ARCHITECTURE.md", room, other)
			}
		}
	}
	for _, r := range rooms(t) {
		name := strings.TrimPrefix(r.ImportPath, module)
		parts := strings.Split(name, "/")
		if parts[0] == "sandbox" { // sandbox/README.md has its packages
			continue
		}
		for _, part := range parts[1:] {
			if part != "internal" && !names[parts[0]][part] {
				t.Errorf("the map in ARCHITECTURE.md does not name %s", name)
			}
		}
	}
}

// documents returns the paths of all documents, from the root of the project.
func documents(t *testing.T) (all []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(".."), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && d.Name()[0] == '.' && d.Name() != ".github"):
			return fs.SkipDir
		case path.Ext(file) == ".md":
			all = append(all, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	docLink  = regexp.MustCompile(`\]\(([\w./-]*)(#[\w-]+)?\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	noAnchor = regexp.MustCompile(`[^\w\- ]`)
)

// headings returns the anchors of the headings of a page.
func headings(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		words := noAnchor.ReplaceAllString(strings.ToLower(m[1]), "")
		found["#"+strings.ReplaceAll(words, " ", "-")] = true
	}
	return found
}

// TestLinksOfDocumentsLeadSomewhere follows the links between the documents, and those to other
// files.
func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	followed := 0
	linked := map[string]bool{}
	for _, doc := range documents(t) {
		text := fenced.ReplaceAllString(read(t, filepath.Join("..", doc)), "")
		for _, m := range docLink.FindAllStringSubmatch(text, -1) {
			target := doc
			if m[1] != "" {
				target = path.Join(path.Dir(doc), m[1])
			}
			if doc == "ARCHITECTURE.md" {
				linked[target] = true
			}
			if _, err := os.Stat(filepath.Join("..", target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, target)
			} else if m[2] != "" && !headings(read(t, filepath.Join("..", target)))[m[2]] {
				t.Errorf("%s links to %s%s: there is no such heading", doc, target, m[2])
			}
			followed++
		}
	}
	if followed < 300 {
		t.Errorf("only %d links found", followed)
	}
	for _, doc := range documents(t) {
		if path.Base(doc) == "DESIGN.md" && !linked[doc] {
			t.Errorf("ARCHITECTURE.md does not link to %s", doc)
		}
	}
}

var (
	// docName is a name of the code in a document: of a function, a method with its receiver, a type
	// or a field.
	docName = regexp.MustCompile(`^[A-Za-z]\w*(?:\.[A-Za-z]\w*)*$`)
	inside  = regexp.MustCompile(`[a-z][A-Z]|\.[A-Za-z]`)
	anyName = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// namesInCode returns every word of the Go files that does not stand in a comment.
func namesInCode(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, r := range rooms(t) {
		for _, f := range append(r.GoFiles, r.IgnoredGoFiles...) {
			for line := range strings.Lines(read(t, filepath.Join(r.Dir, f))) {
				if code, _, _ := strings.Cut(line, "//"); code != "" {
					for _, w := range anyName.FindAllString(code, -1) {
						found[w] = true
					}
				}
			}
		}
	}
	return found
}

// TestDocsNameWhatIsInTheCode checks that functions, types and fields exist that the documents for
// contributors name in code spans.
func TestDocsNameWhatIsInTheCode(t *testing.T) {
	code := namesInCode(t)
	docs := []string{"ARCHITECTURE.md", "docs/failures.md", "docs/protocol.md", "docs/tour.md", "docs/where.md"}
	for _, doc := range documents(t) {
		if path.Base(doc) == "DESIGN.md" {
			docs = append(docs, doc)
		}
	}
	missing := map[string]bool{}
	for _, doc := range docs {
		for _, m := range codeSpan.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, "../"+doc), ""), -1) {
			name := m[1]
			if !docName.MatchString(name) || !inside.MatchString(name) || strings.HasPrefix(name, "Test") {
				continue
			}
			last := name[strings.LastIndexByte(name, '.')+1:]
			if last == "go" || last == "md" || last == "yaml" || last == "txtar" {
				continue
			}
			if !code[last] {
				missing[doc+" names "+name+", which is not in the code"] = true
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(missing)) {
		t.Error(m)
	}
}
