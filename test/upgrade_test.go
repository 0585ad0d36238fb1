package test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/status"
)

var upgradeFrom = flag.Int(
	"upgrade.from",
	checkpoint.Format-1,
	"format of the older replicator of the rolling upgrade",
)

// lastCommit returns the last commit that wrote a format as its newest.
func lastCommit(t *testing.T, format int) string {
	t.Helper()
	for line := range strings.Lines(read(t, "upgrade/formats.txt")) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == strconv.Itoa(format) {
			return f[1]
		}
	}
	t.Fatalf("test/upgrade/formats.txt names no commit for format %d", format)
	return ""
}

// TestEachOlderFormatHasItsLastCommit: where the history holds it, the commit that is named has that format.
func TestEachOlderFormatHasItsLastCommit(t *testing.T) {
	for format := 1; format < checkpoint.Format; format++ {
		commit := lastCommit(t, format)
		source, err := exec.Command("git", "-C", "..", "grep", "-hE", "^const Format = [0-9]+", commit, "--",
			"checkpoint").Output()
		if err != nil {
			continue // a shallow checkout
		}
		if !strings.HasSuffix(strings.TrimSpace(string(source)), fmt.Sprint("= ", format)) {
			t.Errorf("commit %s has %q, want format %d", commit, source, format)
		}
	}
}

// capped builds this tree as one that reads and writes no format above the given one.
func capped(t *testing.T, format int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), fmt.Sprint("replicator-capped-at-", format))
	flags := fmt.Sprintf("-w -X github.com/tailrace-cdc/replicator/checkpoint.cappedFormat=%d", format)
	if err := build("..", path, flags); err != nil {
		t.Fatal(err)
	}
	return path
}

// released builds the replicator of the last commit with a format, once per machine; ok is false where the history does
// not hold that commit.
func released(t *testing.T, format int) (path string, ok bool) {
	t.Helper()
	commit := lastCommit(t, format)
	path = filepath.Join(os.TempDir(), "tailrace-upgrade-"+commit, "replicator")
	if _, err := os.Stat(path); err == nil {
		return path, true
	}
	tree, err := exec.Command("git", "-C", "..", "archive", "--format=tar", commit).Output()
	if err != nil {
		t.Logf("the history does not hold commit %s: %v", commit, err)
		return "", false
	}
	dir := t.TempDir()
	if err := unpack(tree, dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(dir, "replicator")
	if err := build(dir, built, "-w"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(built)
	if err == nil { // renamed into place, so that another test process never runs half of it
		err = errors.Join(os.WriteFile(path+".new", b, 0o700), os.Rename(path+".new", path))
	}
	if err != nil {
		t.Fatal(err)
	}
	return path, true
}

// unpack writes the directories and files of an archive into a directory.
func unpack(archive []byte, dir string) error {
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o700)
		case tar.TypeReg:
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, b, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
}

// TestRollingUpgradeAndTheWayBack replaces an older replicator by this one, goes back, forward again, and raises the
// logs; from then on the older one is refused. Its two forms are the program as it was, and this one, capped.
func TestRollingUpgradeAndTheWayBack(t *testing.T) {
	long(t, "20 s, and a build of an older replicator")
	from := *upgradeFrom
	t.Run("beside the last commit of the older format", func(t *testing.T) {
		w := newWorld(t, 77)
		// The older build does not have these keys.
		w.testing = strings.Replace(w.testing, "date_trust: 1ns, patience: 300ms, ", "", 1)
		older, ok := released(t, from)
		if !ok {
			t.Skip("the checkout has no history")
		}
		w.upgradeFrom(older, from, false)
	})
	t.Run("beside a build that is capped", func(t *testing.T) {
		w := newWorld(t, 78)
		w.upgradeFrom(capped(t, from), from, true)
	})
}

// upgradeFrom runs the rolling upgrade from an older program. knows says that this one follows the format of the
// pipeline.
func (w *world) upgradeFrom(older string, from int, knows bool) {
	w.t.Helper()
	w.queue = fmt.Sprintf("{url: %q, replicas: 1, max_bytes: 64MiB}", w.NATS.URL())
	w.prepare("Orders")
	n := 0
	put := func() {
		for range 20 {
			n++
			w.Put("Orders", fmt.Sprint("hats", n%7), fmt.Sprint("fedora", n), fmt.Sprintf(`"n":{"N":"%d"}`, n))
		}
	}
	begin := func(binary string) *daemon {
		w.binary = binary
		defer func() { w.binary = "" }()
		return w.run()
	}
	// takes has d take the log over, apply everything, and leave the log in a format.
	takes := func(d *daemon, format int) {
		put()
		d.until("it owns the log", func() bool { return d.table("Orders").State == "running" })
		d.settle("Orders")
		d.until(fmt.Sprint("the log has format ", format), func() bool { return d.table("Orders").LogFormat == format })
	}
	standsBy := func(d *daemon) {
		d.until("it stands by", func() bool { return d.table("Orders").State == status.StandBy })
	}

	old := begin(older)
	takes(old, from)
	newer := w.run()
	standsBy(newer)
	old.stop()
	takes(newer, from) // in the format of the older one

	old = begin(older) // the way back
	standsBy(old)
	newer.stop()
	takes(old, from)

	newer = w.run() // forward
	standsBy(newer)
	if f := w.formats(); f.Format != from || f.Finalized || len(f.Logs) != 1 || f.Logs[0].Format != from {
		w.t.Errorf("before it is raised: %+v", f)
	}
	w.refused(1, "nothing was changed", "upgrade", "--finalize")
	old.stop()
	takes(newer, from)

	w.ok("upgrade", "--finalize", "--yes")
	newer.until(
		"it raises the log while it runs",
		func() bool { return newer.table("Orders").LogFormat == checkpoint.Format },
	)
	takes(newer, checkpoint.Format)
	if f := w.formats(); f.Format != checkpoint.Format || !f.Finalized || f.Logs[0].Format != checkpoint.Format {
		w.t.Errorf("after it is raised: %+v", f)
	}

	old = begin(older)
	w.Until("the older one is refused", func() bool {
		return strings.Contains(old.output.String(), "upgrade the replicator")
	})
	if knows {
		if code := old.exit(); code != 3 {
			w.t.Errorf("the older one ends with %d", code)
		}
	}
	put()
	newer.settle("Orders")
	w.Equal("Orders")
	w.refused(2, "replicator upgrade --finalize", "run", "--upgrade")
}

// formatsOf is what `replicator upgrade --json` prints.
type formatsOf struct {
	Format    int
	Finalized bool
	Logs      []struct{ Format, Reads int }
}

func (w *world) formats() (f formatsOf) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.ok("upgrade", "--json")), &f); err != nil {
		w.t.Fatal(err)
	}
	return f
}
