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
		// These tests mostly wait for processes, so more run in parallel than there are cores.
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
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

// program returns the path of replicator, built at the first call, with the race detector if the tests have it.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binDir, "replicator")
	args := []string{"build", "-ldflags=-w", "-o", path}
	if raceEnabled() {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "../cmd/replicator")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build replicator: %w\n%s", err, out)
	}
	return path, nil
})

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
