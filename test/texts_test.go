package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// textFields are the names of fields and methods that hold or make texts for people.
var textFields = []string{
	"Error", "Sentence", "Line", "Reason", "Reasons", "Why", "What", "Hint", "Cause", "Halt", "Message", "Description",
	"Trouble",
}

// readsOfTexts are the functions that read a text of another system, which has neither type nor
// code for what it says, or one that logs hold as it stands.
var readsOfTexts = map[string]string{
	"source/credentials.go:isCredentials":                 "the AWS SDK has no type for missing credentials",
	"source/credentials.go:credentialsHint":               "nor for most of the providers that failed",
	"sink/archive/bucket/reply.go:withoutCredentials":     "the same",
	"sink/archive/bucket/reply.go:classOfCall":            "Azure's SDK has no type for it",
	"demo/writer.go:call":                                 "DynamoDB has one code for all invalid calls",
	"queue/conn/errors.go:OutcomeOf":                      "JetStream has one code for a full stream and a broken store",
	"queue/embedded/server.go:healthOf":                   "the NATS server has one type for all errors of streams",
	"transform/compile/when.go:whenHint":                  "the parser of conditions has no type for its errors",
	"cmd/replicator/internal/render/status.go:errorsOnce": "how often gRPC's text is printed; nothing else depends on it",
	"checkpoint/gaps.go:BeforeStart":                      "ReasonBeforeStart is stored: logs have no other mark of it",
}

var words = regexp.MustCompile(`[A-Za-z]{2,} [A-Za-z]`)

// TestTextsAreNotRead finds branches on texts for people: a search for words in a text, or in a
// field that holds one.
//
// Rule 14: texts for people are made from codes, and nothing branches on a text of ours.
func TestTextsAreNotRead(t *testing.T) {
	reads := map[string]bool{}
	for path, file := range parsedSources(t) {
		consts := constantsOf(file)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if what := readOfText(n, consts); what != "" {
					place := path + ":" + f.Name.Name
					if reads[place] = true; readsOfTexts[place] == "" {
						t.Errorf("%s reads a text for people (%s): give what it says a code or a field", place, what)
					}
				}
				return true
			})
		}
	}
	for place := range readsOfTexts {
		if !reads[place] {
			t.Errorf("%s reads no text any more: take it out of the list", place)
		}
	}
}

// readOfText returns how a node branches on a text for people; "" for one that does not.
func readOfText(n ast.Node, consts map[string]string) string {
	switch x := n.(type) {
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.SelectorExpr)
		if !ok || len(x.Args) < 2 || !isIdent(f.X, "strings") || !slices.Contains([]string{"Contains", "HasPrefix",
			"HasSuffix", "Index", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "Split", "SplitN"}, f.Sel.Name) {
			return ""
		}
		if isText(x.Args[0]) || words.MatchString(constant(x.Args[1], consts)) {
			return "strings." + f.Sel.Name
		}
	case *ast.BinaryExpr:
		if x.Op != token.EQL && x.Op != token.NEQ {
			return ""
		}
		for _, sides := range [][2]ast.Expr{{x.X, x.Y}, {x.Y, x.X}} {
			if isText(sides[0]) && words.MatchString(constant(sides[1], consts)) {
				return x.Op.String()
			}
		}
	}
	return ""
}

// isText reports whether an expression is a field or the result of a method for people.
func isText(x ast.Expr) bool {
	if call, ok := x.(*ast.CallExpr); ok {
		x = call.Fun
	}
	s, ok := x.(*ast.SelectorExpr)
	return ok && slices.Contains(textFields, s.Sel.Name)
}

func isIdent(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}

// constant returns the value of a string, as far as the file shows it.
func constant(x ast.Expr, consts map[string]string) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(x.Value)
		return s
	case *ast.Ident:
		return consts[x.Name]
	}
	return ""
}

func constantsOf(file *ast.File) map[string]string {
	consts := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
			for i, name := range spec.Names {
				if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					consts[name.Name], _ = strconv.Unquote(lit.Value)
				}
			}
		}
		return true
	})
	return consts
}

// parsedSources returns the files of the program, by their paths in the repository: without tests,
// tools and sandbox.
func parsedSources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (slices.Contains([]string{"test", "tools", "sandbox", "bin", "dist"}, path) ||
			strings.HasPrefix(d.Name(), ".") && path != ".") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
