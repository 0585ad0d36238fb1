package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Room returns how many bytes the file system of a directory, or of the nearest one above it that exists, has for this
// process.
func Room(dir string) (int64, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return 0, fmt.Errorf("ask for room: %w", err)
	}
	for {
		var s unix.Statfs_t
		err := unix.Statfs(dir, &s)
		if above := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && above != dir {
			dir = above
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("ask the file system of %s for room: %w", dir, err)
		}
		return int64(s.Bavail * uint64(s.Bsize)), nil
	}
}
