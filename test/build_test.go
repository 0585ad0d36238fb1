package test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
)

// binDir is the directory of the program under test, which is built once for all tests.
var binDir string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if binDir, err = os.MkdirTemp("", "tailrace-test-"); err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(binDir) }()
		for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "MAIL_KEY"} {
			if err := os.Setenv(name, "sandbox"); err != nil {
				panic(err)
			}
		}
		// These tests mostly wait for processes, so more run in parallel than there are cores, whatever
		// -parallel says for the other packages.
		flag.Parse()
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// long skips the test with -short. why says what it costs.
func long(t *testing.T, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("long: %s; make test runs it", why)
	}
}

// program returns the path of replicator, built at the first call, with the race detector if the
// tests have it.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binDir, "replicator")
	return path, build("..", path, "-w")
})

// build builds the replicator of a source tree with what the tests were built with: packages are
// compiled once for all.
func build(tree, path, ldflags string) error {
	args := []string{"build", "-trimpath", "-ldflags=" + ldflags, "-o", path}
	if raceEnabled() {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/replicator")...)
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the replicator of %s: %w\n%s", tree, err, out)
	}
	return nil
}

func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}
