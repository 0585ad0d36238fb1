package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Volume is a file system: bytes available to this process, and bytes in total.
type Volume struct{ Available, Total uint64 }

// VolumeOf asks the file system of a directory, or of the nearest one above it that exists.
func VolumeOf(dir string) (Volume, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Volume{}, fmt.Errorf("ask the file system of the queue: %w", err)
	}
	for {
		var s unix.Statfs_t
		err := unix.Statfs(dir, &s)
		if above := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && above != dir {
			dir = above
			continue
		}
		if err != nil {
			return Volume{}, fmt.Errorf("ask the file system of %s: %w", dir, err)
		}
		return Volume{Available: s.Bavail * uint64(s.Bsize), Total: s.Blocks * uint64(s.Bsize)}, nil
	}
}

// Writable returns why an embedded store cannot be made or written in dir; nil when it can. It changes nothing.
func Writable(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			continue
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory", at)
		}
		if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("write into %s: %w", at, err)
		}
		return nil
	}
}
