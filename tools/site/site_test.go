// Package site makes the documentation as a site with Hugo, from the pages of docs/ as they are
// (`make site`), and follows its links.
package site

import (
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// made builds the site into a directory of the test, with $HUGO or the one of this module.
func made(t *testing.T) string {
	t.Helper()
	name, args := "go", []string{"tool", "hugo"}
	if hugo := os.Getenv("HUGO"); hugo != "" {
		name, args = hugo, nil
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), name, append(args, "--destination", dir, "--panicOnWarning", "--noBuildLock")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

var (
	reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	anchor    = regexp.MustCompile(`\bid="([^"]*)"`)
	heading   = regexp.MustCompile(`<title>(?:| · Tailrace)</title>`)
)

// TestLinksOfTheSiteLeadSomewhere: each link and picture leads to a file of the site, and each
// fragment to an anchor in it; links out of the site to files of the repository that exist.
func TestLinksOfTheSiteLeadSomewhere(t *testing.T) {
	dir := made(t)
	pages := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".html" {
			text, err := os.ReadFile(filepath.Join(dir, name))
			pages[name] = string(text)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for name, text := range pages {
		if heading.MatchString(text) {
			t.Errorf("%s has no title", name)
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			followed++
			follow(t, dir, pages, name, m[1])
		}
	}
	if followed < 1000 {
		t.Errorf("only %d links found", followed)
	}
}

func follow(t *testing.T, dir string, pages map[string]string, from, link string) {
	t.Helper()
	u, err := url.Parse(strings.ReplaceAll(link, "&amp;", "&"))
	if err != nil {
		t.Errorf("%s: %v", from, err)
		return
	}
	if u.IsAbs() {
		file, ok := strings.CutPrefix(u.Path, "/tailrace-cdc/replicator/blob/main/")
		if _, err := os.Stat(filepath.Join("../..", filepath.FromSlash(file))); ok && err != nil {
			t.Errorf("%s: %s leads to no file of the repository", from, link)
		}
		return
	}
	target := from
	if u.Path != "" {
		target = path.Join(path.Dir(from), u.Path)
	}
	if info, err := os.Stat(filepath.Join(dir, target)); err == nil && info.IsDir() {
		target = path.Join(target, "index.html")
	}
	if _, err := os.Stat(filepath.Join(dir, target)); err != nil {
		t.Errorf("%s: %s leads to no file of the site", from, link)
		return
	}
	if u.Fragment == "" {
		return
	}
	for _, m := range anchor.FindAllStringSubmatch(pages[target], -1) {
		if m[1] == u.Fragment {
			return
		}
	}
	t.Errorf("%s: %s: %s has no such anchor", from, link, target)
}

// TestEveryPageIsInTheSite, and llms.txt.
func TestEveryPageIsInTheSite(t *testing.T) {
	dir := made(t)
	err := fs.WalkDir(os.DirFS("../../docs"), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".md" {
			return err
		}
		page := strings.TrimSuffix(name, ".md") + ".html"
		if path.Base(name) == "README.md" {
			page = path.Join(path.Dir(name), "index.html")
		}
		if text, err := os.ReadFile(filepath.Join(dir, page)); err != nil || !strings.Contains(string(text), "<h1") {
			t.Errorf("%s has no page %s: %v", name, page, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "llms.txt")); err != nil {
		t.Error(err)
	}
}
