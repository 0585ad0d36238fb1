package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tailrace-cdc/replicator/cmd/replicator/internal/cli"
	"github.com/tailrace-cdc/replicator/cutover/certificate"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/verify"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// files begins the files of a verify as its flags say.
func files(t *testing.T, differences, html string) (*verifyFlags, verifyFiles) {
	t.Helper()
	o := &verifyFlags{differences: differences, html: html}
	f, err := o.openFiles(&cli.App{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return o, f
}

var difference = report.OfItem("Orders", "orders",
	&verify.Verdict{Key: `{"pk":{"S":"secret"}}`, Status: verify.Different})

// TestDifferencesAreTheirOwnersWhateverFileWasThere: nobody reads them who could read, or has open, an earlier file of
// that name. That one stays as it is until they are complete, and for good where verify fails.
func TestDifferencesAreTheirOwnersWhateverFileWasThere(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "differences.jsonl"), filepath.Join(dir, "link.jsonl")
	if err := errors.Join(os.WriteFile(real, []byte("earlier\n"), 0o666), os.Chmod(real, 0o666),
		os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	earlier, err := os.Open(real)
	if err != nil {
		t.Fatal(err)
	}
	defer earlier.Close()
	for _, complete := range []bool{false, true} {
		o, f := files(t, link, "")
		if err := difference.Write(o.Lines); err != nil {
			t.Fatal(err)
		}
		if complete {
			if err := f.finish(report.PageOptions{}, nil); err != nil {
				t.Fatal(err)
			}
		}
		f.close()
		text, err := os.ReadFile(real)
		if err != nil || strings.Contains(string(text), "secret") != complete {
			t.Errorf("complete: %t, %q, %v", complete, text, err)
		}
		if list, _ := os.ReadDir(dir); len(list) != 2 {
			t.Errorf("complete: %t, %d files", complete, len(list))
		}
	}
	info, err := os.Stat(real)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if info, err = os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if b := make([]byte, 20); func() int { n, _ := earlier.Read(b); return n }() != len("earlier\n") {
		t.Errorf("who had the earlier file open reads %q", b)
	}
}

// TestFilesOnAFullVolume: exit code 3, the file, its volume, and what to do. /dev/full is one.
func TestFilesOnAFullVolume(t *testing.T) {
	cert := &certificate.Certificate{Verdict: "equal"}
	for flag, write := range map[string]func() error{
		"--differences": func() error { o, _ := files(t, "/dev/full", ""); return difference.Write(o.Lines) },
		"--html": func() error {
			_, f := files(t, "", "/dev/full")
			return f.finish(report.PageOptions{Made: time.Now()}, []report.Table{{}})
		},
		"--out": func() error { return writeCertificate(&cli.App{}, "/dev/full", cert, nil, noted) },
	} {
		err := write()
		class, hint := failure.Of(err)
		if class != failure.Unready || !errors.Is(err, unix.ENOSPC) ||
			!strings.Contains(err.Error(), "/dev/full: no room in /dev: ") || !strings.Contains(hint, flag) ||
			!strings.Contains(hint, "make room") {
			t.Errorf("%s: %v, %s, %q", flag, err, class, hint)
		}
	}
}

func TestCertificateIsForEverybodyToRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "certificate.json")
	for range 2 {
		if err := writeCertificate(&cli.App{}, path, &certificate.Certificate{Verdict: "equal"}, nil, noted); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	_, err := openOutput(&cli.App{}, "no/such/directory/page.html", "page", "--html")
	if err == nil || !strings.Contains(err.Error(), "make page no/such/directory/page.html") {
		t.Error(err)
	}
}

// noted notes nowhere that a certificate was issued.
func noted() error { return nil }

// TestDashIsStdout: what is printed for people goes to stderr then, and two outputs are not mixed.
func TestDashIsStdout(t *testing.T) {
	var out, errs bytes.Buffer
	a := &cli.App{Out: &out, Errs: &errs}
	o := &verifyFlags{differences: "-"}
	f, err := o.openFiles(a)
	if err != nil {
		t.Fatal(err)
	}
	a.Print("a verdict for people")
	if err := errors.Join(difference.Write(o.Lines), f.finish(report.PageOptions{}, nil)); err != nil {
		t.Fatal(err)
	}
	f.close()
	if !strings.Contains(out.String(), "secret") || strings.Contains(out.String(), "people") ||
		!strings.Contains(errs.String(), "people") {
		t.Errorf("stdout %q, stderr %q", out.String(), errs.String())
	}
	for name, o := range map[string]*verifyFlags{
		"twice": {differences: "-", html: "-"}, "with --json": {differences: "-"},
	} {
		a := &cli.App{Out: &out, Errs: &errs, JSON: name == "with --json"}
		if _, err := o.openFiles(a); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
