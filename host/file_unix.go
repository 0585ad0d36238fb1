//go:build unix

package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SyncsDirectories reports whether File.Sync makes the names in a directory durable.
const SyncsDirectories = true

// Lock locks an open file without waiting, until it is closed or its process ends, and reports
// whether it could: false means that another process, or another open file of this one, has it
// locked.
func Lock(f *os.File, kind Kind) (bool, error) {
	how := unix.LOCK_SH
	if kind == Exclusive {
		how = unix.LOCK_EX
	}
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// HasName reports whether an open file still has a name, so that it was not removed since it was
// opened.
func HasName(f *os.File) (bool, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return false, err
	}
	return s.Nlink > 0, nil
}

// CheckWritable returns why this process cannot make files in a directory; nil when it can. It
// changes nothing.
func CheckWritable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }

func volume(dir string) (Volume, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Volume{}, err
	}
	return Volume{Available: s.Bavail * uint64(s.Bsize), Total: s.Blocks * uint64(s.Bsize)}, nil
}
