package extsort

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fill lets the next file of that name be written to a volume that is full.
func fill(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Symlink("/dev/full", filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// TestFullVolumeIsNamedAndFreed: what could not be written is named with its directory, and does
// not take room that others need. What was stored before stays.
func TestFullVolumeIsNamedAndFreed(t *testing.T) {
	for _, c := range []struct {
		name string
		file string
		bulk int // bytes of a record
	}{
		{"a run that fits into the buffer", "part-00007-00001.run", 10},
		{"a run that does not", "part-00007-00001.run", 1 << 20},
		{"a manifest", "part-00007.json.new", 10},
	} {
		s, err := Open(filepath.Join(t.TempDir(), "scratch"), "a")
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Writer(7, 1)
		if err != nil {
			t.Fatal(err)
		}
		add := func() error {
			w.Add(Record{Row: []byte("r"), Name: []byte("n"), Value: []byte(strings.Repeat("x", c.bulk))})
			return w.Save("after", nil, false)
		}
		if err := add(); err != nil {
			t.Fatal(err)
		}
		fill(t, s.Dir(), c.file)
		err = add()
		var full *NoRoomError
		if !errors.As(err, &full) || !errors.Is(err, unix.ENOSPC) || full.Dir != s.Dir() ||
			!strings.Contains(err.Error(), "no room in "+s.Dir()) || !strings.Contains(err.Error(), c.file[:10]) {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := os.Lstat(filepath.Join(s.Dir(), "part-00007-00001.run")); err == nil && c.file[10] == '-' {
			t.Errorf("%s: the run is left", c.name)
		}
		if p, err := s.Part(7); err != nil || p.After != "after" || len(p.Files) != 1 {
			t.Errorf("%s: what was stored is %+v, %v", c.name, p, err)
		}
	}
}

func TestOtherErrorsAreNoFullVolume(t *testing.T) {
	plain := errors.New("plain")
	if err := NoRoom("d", plain); !errors.Is(err, plain) || errors.As(err, new(*NoRoomError)) {
		t.Error(err)
	}
	known := error(&NoRoomError{Dir: "first", Need: 3 << 30, Free: 12 << 20})
	if err := NoRoom("second", fmt.Errorf("write: %w", known)); !strings.Contains(err.Error(),
		"no room in first: about 3.0 GiB more are needed there, and 12 MiB are free") {
		t.Error(err)
	}
}
