package host

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// SyncsDirectories reports whether File.Sync makes the names in a directory durable. Windows
// refuses to flush a directory, and NTFS writes names to its journal by itself, soon but not at
// once.
const SyncsDirectories = false

// lockedAt is the place of the byte that Lock locks. Other processes cannot read what is locked
// here, and they must read the pid at the beginning, so it lies far behind any content.
const lockedAt = 1 << 30 // the upper half of the offset

// Lock locks an open file without waiting, until it is closed or its process ends, and reports
// whether it could: false means that another process, or another open file of this one, has it
// locked.
func Lock(f *os.File, kind Kind) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if kind == Exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: lockedAt})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// HasName reports whether an open file still has a name, so that it was not removed since it was
// opened.
func HasName(f *os.File) (bool, error) {
	var i windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &i); err != nil {
		return false, err
	}
	return i.NumberOfLinks > 0, nil
}

// CheckWritable returns nil: access control lists decide, and only a write checks them.
func CheckWritable(string) error { return nil }

func volume(dir string) (Volume, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Volume{}, err
	}
	var v Volume
	err = windows.GetDiskFreeSpaceEx(name, &v.Available, &v.Total, nil)
	return v, err
}
