package problem

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// reporters are the functions and methods that take a problem's code, as their first argument that
// looks like one.
var reporters = map[string]bool{
	"Errorf": true, "Warnf": true, "fault": true, "warn": true, // config, lang, transform
	"errorf": true, "warnf": true, "failed": true, // preflight
}

var (
	codeWord    = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	codeHeading = regexp.MustCompile(`(?m)^### ([a-z0-9_]+)\n\n(\*(?:Error|Warning|Error or warning)\* · (?s:.+?)\n)\n`)
)

// TestEveryCodeIsExplained compares the codes in the source with the headings of the page that
// problems link to: each code has an entry with cause, example and fix, and no entry is about a
// code that nothing reports.
func TestEveryCodeIsExplained(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", messagesPage))
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, m := range codeHeading.FindAllStringSubmatch(string(page), -1) {
		explained[m[1]] = true
		if !strings.Contains(m[2], "\nExample: ") || !strings.Contains(m[2], "\nFix: ") {
			t.Errorf("%s has no example or no fix", m[1])
		}
		if !strings.Contains(string(page), "[`"+m[1]+"`](#"+m[1]+")") {
			t.Errorf("%s is not in the list at the top", m[1])
		}
	}
	if n := strings.Count(string(page), "\n### "); n != len(explained) {
		t.Errorf("%d headings, but %d entries of codes that are complete", n, len(explained))
	}
	reported, literals := codesInSource(t, "../config", "../transform", "../cmd/replicator", "../preflight", ".")
	for code, place := range reported {
		if !explained[code] {
			t.Errorf("%s: %s has no heading %q in %s", place, code, "### "+code, messagesPage)
		}
	}
	for code := range explained {
		if !literals[code] {
			t.Errorf("%s explains %s, which nothing reports", messagesPage, code)
		}
	}
	if len(reported) < 90 {
		t.Errorf("only %d codes found in the source", len(reported))
	}
}

// codesInSource returns the codes that the packages below the directories report, with a place of
// each, and all their string literals.
func codesInSource(t *testing.T, dirs ...string) (reported map[string]string, literals map[string]bool) {
	t.Helper()
	reported, literals = map[string]string{}, map[string]bool{}
	fset := token.NewFileSet()
	visit := func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := literal(n); ok {
				literals[s] = true
			}
			if code := codeOf(n); code != "" {
				reported[code] = fset.Position(n.Pos()).String()
			}
			return true
		})
		return nil
	}
	for _, dir := range dirs {
		if err := filepath.WalkDir(dir, visit); err != nil {
			t.Fatal(err)
		}
	}
	return reported, literals
}

// codeOf returns the code that a node gives to a problem, or "".
func codeOf(n ast.Node) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		if !reporters[callee(n)] {
			return ""
		}
		for _, arg := range n.Args {
			if s, ok := literal(arg); ok && codeWord.MatchString(s) && s != SeverityError && s != SeverityWarning {
				return s
			}
		}
	case *ast.CompositeLit:
		return codeField(n)
	}
	return ""
}

// callee returns the name of the called function or method; package fmt's functions have none.
func callee(call *ast.CallExpr) string {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return fn.Name
	case *ast.SelectorExpr:
		if x, ok := fn.X.(*ast.Ident); !ok || x.Name != "fmt" {
			return fn.Sel.Name
		}
	}
	return ""
}

// codeField returns the literal code of a Problem{…}.
func codeField(lit *ast.CompositeLit) string {
	name := ""
	switch typ := lit.Type.(type) {
	case *ast.Ident:
		name = typ.Name
	case *ast.SelectorExpr:
		name = typ.Sel.Name
	case nil:
		name = "Problem" // an element of a list
	}
	if name != "Problem" {
		return ""
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Code" {
				s, _ := literal(kv.Value)
				return s
			}
		}
	}
	return ""
}

func literal(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}
