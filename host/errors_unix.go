//go:build unix

package host

import "golang.org/x/sys/unix"

// The errors of the operating system that callers branch on, for errors.Is.
var (
	ErrNoSpace      error = unix.ENOSPC
	ErrQuota        error = unix.EDQUOT
	ErrFileTooLarge error = unix.EFBIG
	ErrReadOnly     error = unix.EROFS
	ErrIO           error = unix.EIO
	ErrNotDirectory error = unix.ENOTDIR
	ErrNameTooLong  error = unix.ENAMETOOLONG
	ErrAddressInUse error = unix.EADDRINUSE
)

// NoLinks are the errors of a file system that cannot make one more hard link.
var NoLinks = []error{unix.EPERM, unix.ENOTSUP, unix.EMLINK}
