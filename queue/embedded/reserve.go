package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// reserveName is a file of zeros that reserves room on the volume of an embedded store. It is
// deleted when the volume is full: without some room, the store cannot be opened, and the marks
// that let a log be trimmed cannot be stored.
const reserveName = "reserve"

// reserveSize returns the size of the reserve: room for snapshots, for the blocks of up to 8 MiB
// that the server rewrites when it trims inside them, and for its own files; less on a small
// volume.
func reserveSize(v Volume) int64 { return int64(min(64<<20, v.Total/4)) }

// makeReserve makes the reserve, unless it exists.
func makeReserve(dir string, size int64) error {
	name := filepath.Join(dir, reserveName)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make reserve: %w", err)
	}
	if err := errors.Join(allocate(f, size), f.Close()); err != nil {
		_ = os.Remove(name) // HasReserve would count a file that is too short
		return fmt.Errorf("make reserve: %w", err)
	}
	return nil
}

// HasReserve reports whether a store has its reserve.
func HasReserve(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, reserveName))
	return err == nil
}

// dropReserve removes the reserve, and reports whether there was one.
func dropReserve(dir string) bool { return os.Remove(filepath.Join(dir, reserveName)) == nil }

// allocateZeros allocates by writing: slow, but possible on every file system.
func allocateZeros(f *os.File, size int64) error {
	zeros := make([]byte, 1<<20)
	for size > 0 {
		n, err := f.Write(zeros[:min(size, int64(len(zeros)))])
		if err != nil {
			return fmt.Errorf("write reserve: %w", err)
		}
		size -= int64(n)
	}
	return nil
}
