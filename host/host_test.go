package host

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLockKeepsTheOthersOut: a lock belongs to one open file, other open files of the same process
// included.
func TestLockKeepsTheOthersOut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	lock := func(f *os.File, kind Kind, want bool) {
		t.Helper()
		if got, err := Lock(f, kind); err != nil || got != want {
			t.Errorf("locked: %v, want %v; %v", got, want, err)
		}
	}
	first, second := open(), open()
	lock(first, Exclusive, true)
	lock(second, Exclusive, false)
	lock(second, Shared, false)
	if _, err := first.WriteString("17"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "17" {
		t.Errorf("what a locked file holds cannot be read: %q, %v", text, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	lock(second, Shared, true)
	third := open()
	lock(third, Shared, true)
	lock(open(), Exclusive, false)
}

func TestRemovedFileHasNoName(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f, err := root.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if named, err := HasName(f); err != nil || !named {
		t.Errorf("a new file has a name: %v, %v", named, err)
	}
	if err := root.Remove("f"); err != nil {
		t.Fatal(err)
	}
	if named, err := HasName(f); err != nil || named {
		t.Errorf("a removed file has a name: %v, %v", named, err)
	}
}

// TestVolumeOfMissingDirectory: it is that of the directory above, where the missing one will be
// made.
func TestVolumeOfMissingDirectory(t *testing.T) {
	dir := t.TempDir()
	there, err := VolumeOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	missing, err := VolumeOf(filepath.Join(dir, "a", "b"))
	if err != nil || missing.Total != there.Total || there.Available > there.Total || there.Total == 0 {
		t.Errorf("%+v for the directory, %+v for one below; %v", there, missing, err)
	}
}

// TestUnnamedFileNeedsNoDirectory: a directory for temporary files that is missing is made, and no
// name stays in it.
func TestUnnamedFileNeedsNoDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	f, err := Unnamed(dir, "x-*")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("text"); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}
