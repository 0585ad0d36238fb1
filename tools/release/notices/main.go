// Command notices writes the licenses of everything that the replicator is built from: a module
// each, with the text of its license and of its notice, as Apache-2.0, MIT and the BSD licenses
// demand of whoever distributes the program.
//
// It fails when a module has no license, or one that is not on the list: a new dependency under
// another license is a decision, and belongs into docs/decisions.
//
// The licenses are identified by the library of pkg.go.dev, licensecheck.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("notices: ")
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// run writes the notices that the arguments ask for.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("notices", flag.ContinueOnError)
	dir := flags.String("C", ".", "directory of the module")
	pkg := flags.String("package", "./cmd/replicator", "the program")
	platforms := flags.String("platforms", "linux/amd64", "systems and processors, separated by spaces")
	out := flags.String("out", "", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	modules, err := list(ctx, *dir, *pkg, strings.Fields(*platforms))
	if err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "The Tailrace replicator is built from the modules below. Each stands under its own license.\n")
	var wrong []error
	for _, m := range modules {
		if err := describe(&text, m); err != nil {
			wrong = append(wrong, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	log.Printf("%d modules", len(modules))
	return os.WriteFile(*out, text.Bytes(), 0o644) //nolint:gosec // everybody may read it
}

// module is what `go list` says of a module.
type module struct {
	Path, Version, Dir string
	Main               bool
	Replace            *module
}

// list returns the modules of all packages that a program is built from on any of the platforms, in
// order, and the standard library as one more.
func list(ctx context.Context, dir, pkg string, platforms []string) ([]module, error) {
	found := map[string]module{}
	for _, p := range platforms {
		system, processor, _ := strings.Cut(p, "/")
		cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Module", pkg)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
		cmd.Stderr = os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list packages for %s: %w", p, err)
		}
		for dec := json.NewDecoder(bytes.NewReader(text)); ; {
			var r struct{ Module *module }
			if err := dec.Decode(&r); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("read packages for %s: %w", p, err)
			}
			if m := r.Module; m != nil && !m.Main {
				if m.Replace != nil {
					m.Dir = m.Replace.Dir
				}
				found[m.Path] = *m
			}
		}
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("find the standard library: %w", err)
	}
	goroot, version, _ := strings.Cut(strings.TrimSpace(string(root)), "\n")
	modules := []module{{Path: "std", Version: version, Dir: filepath.Clean(goroot)}}
	for _, m := range found {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b module) int { return cmp.Compare(a.Path, b.Path) })
	return modules, nil
}
