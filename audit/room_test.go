package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/verify/extsort"
)

// TestFullScratchIsAnErrorOfTheEnvironment: before a comparison and during it, also where only the
// path is known.
func TestFullScratchIsAnErrorOfTheEnvironment(t *testing.T) {
	for _, err := range []error{
		&extsort.NoRoomError{Dir: "scratch", Need: 1 << 30},
		fmt.Errorf("compare: %w", &extsort.NoRoomError{Dir: "scratch", Err: unix.EDQUOT}),
		fmt.Errorf("keep result: %w", &fs.PathError{Op: "write", Path: "scratch/verified.json", Err: unix.ENOSPC}),
	} {
		got := NoRoom("scratch", err)
		if class, hint := failure.Of(got); class != failure.Unready || !strings.Contains(hint, "--scratch") ||
			!strings.Contains(got.Error(), "no room in scratch") {
			t.Errorf("%v: %v", err, got)
		}
	}
	plain := errors.New("plain")
	if got := NoRoom("scratch", plain); !errors.Is(got, plain) || failure.Known(got) {
		t.Error(got)
	}
	file := failure.With(failure.Unready, "another file", &extsort.NoRoomError{Dir: "elsewhere"})
	if got := NoRoom("scratch", file); got.Error() != file.Error() {
		t.Errorf("an error of another file became %v", got)
	}
}

// TestFullScratchIsCleared, because the logs may be on the same volume, but only where the volume
// is that of the directory, and something was written.
func TestFullScratchIsCleared(t *testing.T) {
	for _, c := range []struct {
		name string
		err  func(dir string) error
		left bool
	}{
		{"full while it is written", func(dir string) error {
			return &extsort.NoRoomError{Dir: filepath.Join(dir, "projection"), Err: unix.ENOSPC}
		}, false},
		{"full with the lists", func(dir string) error { return &extsort.NoRoomError{Dir: dir, Err: unix.ENOSPC} }, false},
		{"not enough before it begins", func(dir string) error { return &extsort.NoRoomError{Dir: dir} }, true},
		{"another volume", func(string) error { return &extsort.NoRoomError{Dir: "/elsewhere", Err: unix.ENOSPC} }, true},
		{"another error", func(string) error { return errors.New("killed") }, true},
	} {
		dir := t.TempDir()
		part := filepath.Join(dir, "projection", "part-00001-00000.run")
		if err := errors.Join(os.Mkdir(filepath.Dir(part), 0o700), os.WriteFile(part, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		err := c.err(dir)
		if got := ClearScratch(dir, err); !errors.Is(got, err) {
			t.Errorf("%s: %v", c.name, got)
		}
		if _, err := os.Stat(part); (err == nil) != c.left {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestRoomIsByCountsThatAreHoursOld: a table that DynamoDB has not counted yet is not said to need
// none.
func TestRoomIsByCountsThatAreHoursOld(t *testing.T) {
	for bytes, want := range map[int64]string{
		80: "orders is compared; that needs about 80 B in runs, by DynamoDB's counts of up to six hours ago.",
		0: "orders is compared, in runs. How much room that needs is not known: DynamoDB counts items every six hours, " +
			"and has counted none.",
		-1: "orders is compared, in runs. How much room that needs is not known: DynamoDB counts items every six hours, " +
			"and has counted none.",
	} {
		if got := beginText("orders", "runs", bytes); got != want {
			t.Errorf("%d bytes: %q, want %q", bytes, got, want)
		}
	}
}
