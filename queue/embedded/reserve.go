package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// reserveName is a file without content that holds room on the volume of an embedded store. It is removed when the
// volume is full: a store cannot be opened, and no mark be stored that lets a log be trimmed, without some room.
const reserveName = "reserve"

// reserveSize has room for snapshots, for the blocks of up to 8 MiB that the server rewrites when it trims inside
// them, and for what it keeps beside the logs; a small volume has a smaller one.
func reserveSize(v Volume) int64 { return int64(min(64<<20, v.Total/4)) }

// makeReserve takes the room, if there is no reserve yet.
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
		_ = os.Remove(name) // a file that is too short would be taken for a whole reserve
		return fmt.Errorf("make reserve: %w", err)
	}
	return nil
}

// HasReserve reports whether a store has its reserve.
func HasReserve(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, reserveName))
	return err == nil
}

// dropReserve gives the room back. It tells whether there was any.
func dropReserve(dir string) bool { return os.Remove(filepath.Join(dir, reserveName)) == nil }

// allocateZeros takes room by writing: everywhere, but slowly.
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
