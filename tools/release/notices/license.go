package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licenses that a dependency may have: none of them says anything about the program
// around it.
var allowed = []string{
	"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MPL-2.0", "Unlicense",
}

// sureness is the share of a text, in percent, that must be one of the known licenses.
const sureness = 75

// docsLicense is the license of a module's documentation, which no program contains.
const docsLicense = "LICENSE.docs"

var (
	licenseFile = regexp.MustCompile(`(?i)^(un)?licen[cs]e([-.].*)?$|^copying(\..*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^notice(\..*)?$|^patents$`)
)

// describe writes a module's name, licenses and texts.
func describe(w io.Writer, m module) error {
	files, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("read module: %w", err)
	}
	var licenses, notices []string
	for _, f := range files {
		switch {
		case f.IsDir() || strings.HasSuffix(f.Name(), ".go"):
		case strings.EqualFold(f.Name(), docsLicense):
		case licenseFile.MatchString(f.Name()):
			licenses = append(licenses, f.Name())
		case noticeFile.MatchString(f.Name()):
			notices = append(notices, f.Name())
		}
	}
	var names []string
	var texts strings.Builder
	for _, name := range append(slices.Clone(licenses), notices...) {
		text, err := os.ReadFile(filepath.Join(m.Dir, name))
		if err != nil {
			return fmt.Errorf("read license: %w", err)
		}
		if slices.Contains(licenses, name) {
			found, err := identify(text)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			names = append(names, found...)
		}
		fmt.Fprintf(&texts, "\n--- %s ---\n\n%s\n", name, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	if len(names) == 0 {
		return errors.New("the module has no license")
	}
	slices.Sort(names)
	fmt.Fprintf(w, "\n\n==== %s %s: %s ====\n%s", m.Path, m.Version, strings.Join(slices.Compact(names), ", "), &texts)
	return nil
}

// identify returns the SPDX names of the licenses in a text.
func identify(text []byte) (names []string, err error) {
	c := licensecheck.Scan(text)
	if c.Percent < sureness {
		return nil, fmt.Errorf("only %.0f %% of the text is a known license", c.Percent)
	}
	for _, m := range c.Match {
		if m.IsURL {
			continue
		}
		if !slices.Contains(allowed, m.ID) {
			return nil, fmt.Errorf("the license %s is not one of %s", m.ID, strings.Join(allowed, ", "))
		}
		names = append(names, m.ID)
	}
	if len(names) == 0 {
		return nil, errors.New("no license was recognised")
	}
	return names, nil
}
